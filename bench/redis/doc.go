// Redis measures package redisstore on a real server, which is the one at -addr or in
// REDIS_ADDR:
//
//	redis-server --port 7390 --save '' --appendonly no &
//	export REDIS_ADDR=127.0.0.1:7390
//	go run ./redis share                    # four processes at 30/s in all, for a minute
//	go run ./redis decision                 # one decision: messages, time, decisions a second
//
// share starts real processes, each with a limiter and 32 goroutines that call as often
// as they may. It fails if they are admitted 1 % beside the rate, ever above burst +
// rate × time, or any of them less than half or more than twice its fair share.
//
// decision makes decisions for which there is always room, from one goroutine and from
// 32 in each of one and four processes, and the same with redis_rate. The server's own
// time is from its INFO commandstats, so nothing else should use it meanwhile. Then it
// tells how long a fact takes to another process.
//
// What is written has names of its own and expires.
package main

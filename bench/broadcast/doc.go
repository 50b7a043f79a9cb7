// Broadcast measures how long a broadcast takes, and what it costs in floods, with weir
// and with what else a gotd program can use:
//
//	go run ./broadcast                          # all workloads, all contenders: about a quarter of an hour
//	go run ./broadcast -workload even,groups -contender weir,waiter
//	go run ./broadcast -json >result.json
//
// Each contender gets a data centre of its own (package localdc, on loopback) that
// enforces the workload's limits, a bot account that has just logged in, full buckets,
// and the same messages from the same number of workers. Contenders that take limits
// are told the data centre's, exactly.
//
// The least possible time is computed from the limits and the messages: no client that
// is never flooded can be faster. Floods are counted by the data centre.
package main

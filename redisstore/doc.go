// Package redisstore lets the processes of one account share their state on a Redis
// server: the charges of quotas (quota.Store), floods, refusals and learned limits
// (store.Facts), and the account's limits (ratelimit.Shared). One [Store] is all three.
//
//	s, err := redisstore.Open("redis://localhost:6379/0", "my bot")
//
// Most programs need only this call. Pass s as the Store in the options of package invoke or
// quota.
// A bot of one process needs no Redis: package boltstore keeps its counts in a file.
//
// # Model
//
// Each call is one script that the server runs in one step: a message and its answer.
// Nothing comes between what it reads and what it writes, and a call that the server
// refuses (a full one, a replica) has changed nothing. All numbers in it are whole:
// microseconds, and counts.
//
// Time is the server's, so the clocks of the processes need not agree. It is kept from
// going back: if the server's clock is set back, time goes on from where it was, and
// nothing is locked or refilled by it. How far the clock was set back is remembered
// until all that was charged before is over. Facts expire by the server's clock as it
// is.
//
// The keys of an account start with weir:{account}: and lie in one slot of a cluster.
// Each has a time to live, of at most two periods of its window, and is gone when
// nothing in it counts any more.
//
//	clock              the time that was told last
//	key:kind:key       quota: a list of hits if the window slides, else a string
//	gate:key:name      a gate, and which processes wait at it
//	hits:key:name      a gate whose window slides: its hits
//	facts, expiry      what is remembered, and until when; news is the channel for it
//
// # Guarantees
//
//   - No two processes take the last slot of a window or the last token of a bucket.
//     A window that slides is exact to the microsecond, in every process.
//   - Gates are charged all or none.
//   - Processes that contend for a gate take turns, by the process and not by the call:
//     each of N gets an Nth, however often it asks. What one leaves, others take.
//   - A process that knows a gate to be used more than the server does is believed, so
//     that neither a server that was away nor one that has lost its data makes a burst.
//   - A call ends within the timeout, 500 ms unless set, and an error says whether the
//     store was unavailable, whether waiting helps, the context was done or an argument was
//     wrong. No error holds a password.
//   - A server that is far away serves: setting a connection up has a time of its own,
//     during which calls fail, and an answer that is late costs no connection.
//
// # Rights
//
// Under an access control list the user needs the keys weir:{account}:*, the channel
// weir:{account}:news and these commands:
//
//	ACL SETUSER bot on >password resetkeys ~weir:{account}:* resetchannels &weir:{account}:news
//	    +@connection +select +eval +evalsha +script|load +time +get +set +del +pexpire +pexpireat
//	    +rpush +llen +lrange +lindex +lset +ltrim +hset +hgetall +hdel
//	    +zadd +zrem +zrangebyscore +zrevrange +publish +subscribe +unsubscribe
//
// [Store.Check] names what is missing; invoke.NewLimiter calls it.
//
// # What it does not promise
//
//   - What the server was told outlives the server only as far as its own persistence
//     does: appendfsync everysec may lose a second, and a replica that takes over may not
//     have heard of the last charges. Quota counts are then lost; gates are protected
//     by what the processes know themselves.
//   - A call that ends with an error may have been charged: its answer was lost. It
//     is never charged for less than it says.
//   - A server that is short of memory and set to evict keys forgets what it counts.
//     Have it refuse instead (maxmemory-policy noeviction).
//   - If the server's clock is set back and later forth again, windows that are open end
//     sooner by as much.
//   - The client's library (go-redis) writes to stderr when it cannot connect, by a logger
//     that all its clients have in common: it is for the program to turn off, with
//     logging.Disable of its package logging, or to replace, with redis.SetLogger.
package redisstore

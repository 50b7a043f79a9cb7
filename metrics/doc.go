// Package metrics turns what happens at the choke point into Prometheus series.
//
// A [Metrics] is an observer of package invoke, which counts, and a collector of
// client_golang, which is registered wherever the program likes:
//
//	m := metrics.New("main")
//	c, err := client.New(appID, appHash, client.Options{Options: invoke.Options{Observer: m}})
//	…
//	m.Watch(c.Limiter())
//	registry.MustRegister(m)
//
// The series are
//
//	weir_requests_total{method,category,result}        requests that were sent
//	weir_request_duration_seconds{category}            from sending to the answer
//	weir_wait_seconds{bucket}                          wait before sending, zero included
//	weir_floods_total{method,kind,scope}               floods that Telegram answered with
//	weir_given_up_total{category,reason}               calls that were not sent, or not again
//	weir_bucket_tokens{bucket}                         tokens that could be taken now
//	weir_bucket_rate{bucket}                           limit in tokens a second
//	weir_bucket_burst{bucket}                          limit in tokens at once
//	weir_bucket_pending{bucket}                        tokens of calls that are not answered yet
//	weir_bucket_waiters{bucket}                        calls in the queue
//	weir_bucket_oldest_wait_seconds{bucket}            how long the first of them has waited
//	weir_congestion_ratio                              of the worst bucket, 0 idle to 1 saturated
//	weir_keyed_gates{gate}                             gates of chats and of the program's own in use
//	weir_keyed_pending{gate}                           tokens of calls that are not answered yet
//	weir_keyed_waiters{gate}                           calls in all their queues
//	weir_keyed_oldest_wait_seconds{gate}               how long the first of those has waited
//	weir_standing_floods{scope}                        floods that are known to stand
//	weir_learned_limits{of}                            limits of categories and chats that floods have lowered
//	weir_limits_lowered_total{category}                floods that lowered one; "chat" for that of a chat
//	weir_stopped_kinds{kind}                           kinds of calls that are no longer sent
//	weir_store_available                               0 while the store is lost, 1 when it is back
//	weir_store_outages_total                           times that it became unavailable
//
// A bucket is a category or "global". Of weir_wait_seconds it is the gate that the call
// waited for most, and so it can be a keyed gate, or "flood" for a flood that had to end.
// A gate is "private" or "group" for chats, "paid" for broadcasts that pay,
// "resolve_phone", or one of the program's own by its name. The result is "ok", "flood",
// "rpc_error", "cancelled" or "error"; the reason is "flood", "refused", "permanent"
// (a kind of call that is no longer sent), "store", "closed", "cancelled" or "error". weir_bucket_rate and
// weir_bucket_burst are what is kept to, lowered by floods or not. Since m
// cannot know whether there is a store, weir_store_available is not shown before the store
// was lost once.
//
// No label holds a chat, a user or a text, so the number of series is bounded by
// the number of methods that a program uses. Each series has the label client with
// the name given to [New], which keeps several clients in one registry apart.
package metrics

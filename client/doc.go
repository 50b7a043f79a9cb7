// Package client is a Telegram client that does not flood: gotd's
// telegram.Client with the choke point of package invoke built in.
//
// [New] takes all that telegram.Options takes, and limits beside it. The client
// has the methods of gotd's that a program uses, and every raw call made through
// them is classified, limited, sent, and waited out when Telegram answers with a
// flood: those of [Client.API] and [Client.Invoke], and those of the pools that
// [Client.Pool], [Client.DC], [Client.MediaOnly] and [Client.CDN] open, which
// gotd's own middlewares do not see.
//
// A program watches the limiter with [Client.Congestion] and [Client.Available],
// skips optional work with [Client.TryAcquire], and changes limits while it runs
// with [Client.UpdateLimits].
//
// # What it does not promise
//
// Three kinds of request are gotd's own and pass no choke point: the first request
// of each connection (initConnection with help.getConfig), key exchange, and
// protocol messages such as acknowledgements. The import of an authorisation into
// another data centre is charged, but gotd sends it.
package client

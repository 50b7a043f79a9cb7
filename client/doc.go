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
// # Files
//
// gotd's own downloader and uploader do the work: [Client.Download],
// [Client.Downloader] with a [Client.FileSource], and [Client.Uploader]. Each part
// passes the choke point, those from a CDN too. A flood that is sat out is not seen by
// them; FLOOD_PREMIUM_WAIT_X, if it is within the threshold, is repeated until the part
// is through, however often it comes. A flood that is above the threshold ends
// the transfer at once with a [*flood.WaitError], which errors.As finds under gotd's own
// words.
//
// A file that lives in another data centre can be had on the client's own connection:
// gotd moves the calls. The floods of that data centre are then kept as floods of the
// account's own, since nobody says where a call went. A pool of [Client.DC] tells them
// apart.
//
// # Updates
//
// A handler may wait. Package dispatch calls Options.Telegram.UpdateHandler on goroutines
// of its own, in order inside a chat and chats side by side, so a handler that waits
// delays only its own chat, and never the connection. The client does the same for each
// hook.UpdateHook among Options.Telegram.Middlewares. All handlers have returned when
// [Client.Run] returns. Options.Updates bounds how many run and how many updates wait;
// updates beyond that are dropped, and the log says so once.
//
// gotd's updates.Manager knows nothing of floods. Its requests for missed updates
// (updates.getState, getDifference and getChannelDifference) wait for as long as it
// takes, unless their context has a threshold of its own. Updates wait in memory until
// updates.getDifference has ended, and arrive afterwards, each once; those that are
// dropped meanwhile are fetched. A difference of one channel that takes longer than
// 250 ms holds up no other channel. The handler that the Manager itself calls is not
// the client's to see: wrap it with dispatch.New and Block, or it is called for one
// update after the other.
//
// # The connection
//
// gotd connects again by itself, without end. The Logger gets a line for each cause why there
// is no connection, at most one a minute and fewer as the outage lasts, and one when there is a
// connection again, with how long that took. A call that ends before gotd wrote it matches
// [invoke.ErrNotSent] and costs nothing. A [Client.Run] that ends without ever having been
// connected returns an error that matches [ErrNeverConnected].
//
// The first request of each connection (help.getConfig in initConnection) is sent by gotd. A
// flood of it is remembered like any other, and no connection to that data centre is opened
// until it has ended. After the transport error -429 (too many connections), the data centre
// is left alone for a second, doubling to a minute.
//
// # What it does not promise
//
// Three kinds of request are gotd's own and pass no choke point: the first request
// of each connection (only its floods are dealt with), key exchange, and
// protocol messages such as acknowledgements. The import of an authorisation into
// another data centre is charged, but gotd sends it.
package client

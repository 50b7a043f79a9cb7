// Command soak lets a bot live on a data centre whose line is bad, and looks whether it
// lost anything.
//
//	go run ./soak -time 10m -seed 1
//
// People write to the bot in private and in groups, the groups in bursts that are beyond
// the published limit, so that handlers wait. The bot answers each message once, over an
// updates.Manager, while it sends a broadcast in the background. Meanwhile the line is cut,
// fails, hangs and leaves connections half open, floods come, and the login is brought to
// another data centre and used there.
//
// When the trouble is over, the bot gets time to catch up. Then every message has one
// answer, every message of the broadcast is there once, and nothing is left over: no
// goroutine, and not much more memory than at the start. Anything else is an error.
package main

// Package floods keeps track of the waits that Telegram has ordered for one account: what
// each covers, when it ends, and which call goes first then.
package floods

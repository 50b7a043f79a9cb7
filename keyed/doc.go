// Package keyed counts what a bot allows its users: "three awards a member a day".
package keyed

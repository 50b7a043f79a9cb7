package config

import (
	"fmt"
	"strconv"
)

const (
	// A hash has 32 characters, a token 35 behind its colon. What is written by
	// hand (a name of a key, a number, a label of a host) is shorter.
	secretRun = 24
	// A message is a line: what is longer tells nothing more.
	maxShown = 80
)

// redact returns text as it may be shown: as it is, or if a secret may be in
// it or it is long, only its length. A secret that was put under the wrong key
// must not be in the message that says so.
func redact(text string) string {
	run := 0
	for i := range len(text) {
		if !isTokenByte(text[i]) {
			run = 0
			continue
		}
		if run++; run == secretRun {
			break
		}
	}
	if run == secretRun || len(text) > maxShown {
		return fmt.Sprintf("(%d characters, not shown)", len(text))
	}
	return text
}

// show returns a key as it may stand in a path: in quotes unless it is a plain
// name.
func show(key string) string {
	if shown := redact(key); consists(shown, isHostByte) {
		return shown
	}
	return strconv.Quote(redact(key))
}

// Package config turns a YAML file and the environment into checked values.
//
// [Load] reads both and returns either a [Config] in which every value has been
// checked, or an [*Error] that lists every fault of the file and the
// environment at once, each with its place, its value and a remedy. A value
// from the environment wins over the file, the file wins over the default.
//
// # What is strict
//
// A key that is not known is a fault, with the nearest known name; so are a key
// given twice, a value of another type, a number out of range, a second
// document, a merge key (<<) and an explicit tag (!!int). A faulty value in the
// file is reported even where the environment overrides it. An alias (*name)
// stands for what it names, and its faults carry the line of the anchor.
//
// What is left empty counts as not given: a key without a value (null in
// YAML), a variable that is set to nothing. The environment knows APP_ID,
// APP_HASH, BOT_TOKEN and SESSION_FILE, the names that programs on gotd use, and STORE.
// example.yaml beside this file shows every key.
//
// # Secrets
//
// The app hash, the bot token and the URL of a Redis server are of type [Secret], which prints as
// "[redacted]" in every format, and no error holds one, not even under a
// key where it does not belong: a run of 24 or more of the characters that
// tokens are made of is left out of every message.
//
// # What it does not do
//
// It does not apply what it read, watch the file, or expand variables and ~ in
// values. It knows the names of the limits, not their defaults: a limit that
// the file does not name stays nil, for the limiter to fill in.
package config

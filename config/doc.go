// Package config reads and checks the settings of a bot: a YAML file, the
// environment and the command line.
//
// [Load] returns a [Config] in which every value has been checked, or an [*Error]
// that lists every fault at once, each with its place, its value and a remedy. The
// command line wins over the environment, the environment over the file, and the
// file over the defaults. example.yaml beside this file shows every key.
//
// # What is strict
//
// These are faults: an unknown key, a key given twice, a value of another type, a
// number out of range, a second document, a merge key (<<) and an explicit tag
// (!!int). A faulty value in the file is reported even where the environment
// overrides it. An alias (*name) stands for what it names; its faults carry the line
// of the anchor. A key without a value and an empty variable count as not given.
//
// # Secrets
//
// The app hash, the bot token and the URL of a Redis server are of type [Secret],
// which prints as "[redacted]" in every format. No error holds one, not even a secret
// under the wrong key: a run of 24 or more of the characters that tokens are made of
// is left out of every message.
//
// # What it does not do
//
// It does not apply the settings, watch the file, or expand variables and ~ in values.
// It knows the names of the limits, not their defaults.
package config

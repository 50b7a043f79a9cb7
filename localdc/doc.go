// Package localdc is a Telegram data centre on loopback that enforces limits.
package localdc

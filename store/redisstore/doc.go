// Package redisstore keeps an account on Redis.
package redisstore

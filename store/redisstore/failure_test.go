package redisstore

import (
	"github.com/weirtg/weir/keyed"
	"time"
)

// requests are one of each kind.
func requests() (all []keyed.Request) {
	for kind := keyed.Sliding; kind <= keyed.Bucket; kind++ {
		w := keyed.Window{Limit: 3, Period: time.Hour, Kind: kind}
		all = append(all, keyed.Request{Key: "k", Window: w, Cost: 1, Record: true})
	}
	return all
}

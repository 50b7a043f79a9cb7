package flood_test

import (
	"testing"

	"github.com/weirtg/weir/flood"
)

func BenchmarkParse(b *testing.B) {
	for _, msg := range []string{"FLOOD_WAIT_31", "CHAT_ADMIN_REQUIRED"} {
		b.Run(msg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				flood.Parse(420, msg)
			}
		})
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// newProgress returns a function to call after each of total steps, by any goroutine.
// On a terminal it moves a bar; elsewhere it writes a line six times.
func newProgress(w io.Writer, total int) (step func()) {
	if terminal(w) {
		bar := progressbar.NewOptions(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription("Broadcast"),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("msg"),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(w) }),
		)
		return func() { _ = bar.Add(1) } // a bar that cannot be drawn is no reason to stop
	}
	var done atomic.Int64
	return func() {
		n := int(done.Add(1))
		if n*6/total > (n-1)*6/total {
			fmt.Fprintf(w, "  %d of %d sent\n", n, total)
		}
	}
}

// terminal tells whether a person looks at w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/localdc"
)

// answerTimeout is how long a person waits for an answer, once it is its turn in their
// chat.
const answerTimeout = 10 * time.Second

// conversation is what people say to the bot, and how they were answered.
type conversation struct {
	patience time.Duration // for one answer

	mu              sync.Mutex
	asked, answered int
	longest         time.Duration
	lines           []string
}

// greet tries the bot's commands, three messages: what a chat takes at once.
func (c *conversation) greet(ctx context.Context, u *localdc.User) error {
	for _, line := range [][2]string{{"/start", "Hello!"}, {"/ping", "pong"}, {"/limits", "Congestion"}} {
		if err := c.ask(ctx, u, line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}

// goOn talks until over is closed.
func (c *conversation) goOn(ctx context.Context, u *localdc.User, pause time.Duration, over <-chan struct{}) error {
	for i := 1; ; i++ {
		select {
		case <-time.After(pause):
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		text := fmt.Sprintf("Are you there? (%d)", i)
		if err := c.ask(ctx, u, text, text); err != nil {
			return err
		}
	}
}

// ask says something and waits for an answer that begins with want. One that does not
// come in time is counted; the error is ctx's or the data centre's.
func (c *conversation) ask(ctx context.Context, u *localdc.User, say, want string) error {
	patience, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	start := time.Now()
	u.Send(say)
	m, err := u.Await(patience, func(m tg.Message) bool { return strings.HasPrefix(m.Message, want) })
	took := time.Since(start)

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.answered++
		c.longest = max(c.longest, took)
		c.lines = append(c.lines, fmt.Sprintf("  %s: %s → %s (%.0f ms)", u.Title(), say, firstLine(m.Message), took.Seconds()*1000))
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		c.lines = append(c.lines, fmt.Sprintf("  %s: %s → no answer", u.Title(), say))
		return nil
	}
	return err
}

// print writes down what was said so far.
func (c *conversation) print(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		fmt.Fprintln(w, line)
	}
}

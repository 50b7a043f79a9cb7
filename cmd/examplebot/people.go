package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	lines           []line
}

// line is what a person said, and what came of it.
type line struct{ who, text string }

// person is somebody who talks to the bot.
type person struct {
	name string
	says [][2]string // and how each answer begins
}

// people try the bot's commands, with three messages each: what a chat takes at once.
func people() []person {
	return []person{
		{"alice", [][2]string{{"/start", "Hello!"}, {"/ping", "pong"}, {"/limits", "Congestion"}}},
		{"bob", [][2]string{{"/award carol", "carol gets an award."}, {"/awards carol", "carol can get"}, {"hello, bot", "hello, bot"}}},
		{"carol", [][2]string{{"/start", "Hello!"}, {"/ping", "pong"}, {"thank you", "thank you"}}},
	}
}

// greet says what a person has to say.
func (c *conversation) greet(ctx context.Context, u *localdc.User, says [][2]string) error {
	for _, line := range says {
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
		c.lines = append(c.lines, line{u.Title(), say + " → " + strings.ReplaceAll(m.Message, "\n", "\n      ")})
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		c.lines = append(c.lines, line{u.Title(), say + " → no answer"})
		return nil
	}
	return err
}

// print writes down what was said so far, one person after the other.
func (c *conversation) print(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.lines, func(a, b line) int { return strings.Compare(a.who, b.who) })
	for _, l := range c.lines {
		fmt.Fprintf(w, "  %s: %s\n", l.who, l.text)
	}
}

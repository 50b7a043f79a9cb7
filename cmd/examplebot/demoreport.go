package main

import (
	"fmt"
	"io"
)

// demoReport is what happened in a demonstration.
type demoReport struct {
	OK          bool `json:"ok"`          // nothing was lost, sent twice or flooded
	Interrupted bool `json:"interrupted"` // the rest is what happened before that

	Chats      int `json:"chats"`
	Messages   int `json:"messages"`   // of the broadcast
	Sent       int `json:"sent"`       // of those, that are in their chats
	Lost       int `json:"lost"`       // of those, that are not; 0 when interrupted
	Duplicates int `json:"duplicates"` // that are there once too often
	Asked      int `json:"asked"`      // messages from people
	Answered   int `json:"answered"`   // of those, that were answered
	// LongestAnswerSeconds is the longest that a person waited for an answer.
	LongestAnswerSeconds float64 `json:"longest_answer_seconds"`

	Floods int `json:"floods"` // calls that the data centre answered with a wait

	// Seconds is how long the broadcast took, LeastSeconds the least that the limits allow,
	// Ratio the one divided by the other, Limit the limit that decides. The last three are
	// zero for a broadcast that was cut short.
	Seconds      float64 `json:"seconds"`
	LeastSeconds float64 `json:"least_seconds"`
	Ratio        float64 `json:"ratio"`
	Limit        string  `json:"limit"`
	// Meanwhile is how many messages went out in that time, answers included.
	Meanwhile int `json:"meanwhile"`
	// BackedOffSeconds is how long the broadcast held back because of congestion.
	BackedOffSeconds float64    `json:"backed_off_seconds"`
	Congestion       congestion `json:"congestion"`
	traffic
}

// congestion is what the broadcast saw of the client's limiter.
type congestion struct {
	Mean    float64 `json:"mean"`
	Highest float64 `json:"highest"`
}

func (r demoReport) text(w io.Writer) {
	if r.Interrupted {
		fmt.Fprintln(w, "\nInterrupted. Until then:")
	}
	fmt.Fprintf(w, "\nsent         %d of %d messages to %d chats, %d lost, %d twice\n", r.Sent, r.Messages, r.Chats, r.Lost, r.Duplicates)
	fmt.Fprintf(w, "answered     %d of %d messages from people, the slowest in %.3f s\n", r.Answered, r.Asked, r.LongestAnswerSeconds)
	if r.LeastSeconds > 0 {
		fmt.Fprintf(w, "time         %.3f s for the broadcast and the %d answers meanwhile; the limits allow no less than %.3f s: it took %.4f times that\n",
			r.Seconds, r.Meanwhile-r.Sent-r.Duplicates, r.LeastSeconds, r.Ratio)
		fmt.Fprintf(w, "             (the limit that decides is %s)\n", r.Limit)
	}
	fmt.Fprintf(w, "floods       %d calls were answered with a wait, as the data centre recorded; %d as the client saw\n", r.Floods, r.ClientFloods)
	fmt.Fprintf(w, "congestion   %.2f on average during the broadcast and %.2f at most (0 is idle, 1 is a call that waits); for it, the broadcast held back %.3f s\n",
		r.Congestion.Mean, r.Congestion.Highest, r.BackedOffSeconds)
	r.traffic.text(w, r.Sent+r.Duplicates+r.Answered)
	if !r.OK && !r.Interrupted {
		fmt.Fprintln(w, "FAILED: something was lost, sent twice or flooded.")
	}
}

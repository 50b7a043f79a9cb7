package ratelimit

// Inheritance says what becomes of the tokens in a bucket when its limit changes.
type Inheritance uint8

const (
	// AsIs carries the tokens over, cut to the new burst, and a debt as well. No change
	// grants tokens.
	AsIs Inheritance = iota
	// Empty starts with an empty bucket, in which the next token arrives after its full
	// time. A debt stays.
	Empty
	// Full starts with a full bucket, for one that had a lower burst while nothing wanted
	// its tokens. A debt stays.
	Full
)

// Change names what is new about a gate's rule; what it does not name stays as it
// is. The zero Change changes nothing.
//
//	ratelimit.Rate(5)            // 5 tokens a second, the burst stays
//	ratelimit.Burst(10)          // holds 10 tokens, the rate stays
//	ratelimit.Rate(5).Burst(10)  // both
//	ratelimit.Rate(5).Inherit(ratelimit.Empty)
//	ratelimit.To(ratelimit.Window{Limit: 20, Period: time.Minute})
type Change struct {
	rate     float64
	burst    int
	hasRate  bool
	hasBurst bool
	to       Rule
	inherit  Inheritance
}

// Rate returns a Change of a bucket to perSecond tokens a second; 0 pauses.
func Rate(perSecond float64) Change { return Change{}.Rate(perSecond) }

// Burst returns a Change to a bucket of tokens; 0 pauses.
func Burst(tokens int) Change { return Change{}.Burst(tokens) }

// To returns a Change to a whole rule. It has to be of the gate's kind: a bucket
// stays a bucket, a window a window of its kind.
func To(rule Rule) Change { return Change{to: rule} }

// Rate returns c with perSecond as its new rate.
func (c Change) Rate(perSecond float64) Change {
	c.rate, c.hasRate = perSecond, true
	return c
}

// Burst returns c with tokens as its new burst.
func (c Change) Burst(tokens int) Change {
	c.burst, c.hasBurst = tokens, true
	return c
}

// Inherit returns c with what becomes of the tokens; [AsIs] unless set. A window takes
// AsIs only. Change{}.Inherit(Empty) empties a bucket and leaves its rule alone.
func (c Change) Inherit(i Inheritance) Change {
	c.inherit = i
	return c
}

// Apply returns what old becomes, or a [*LimitError] if the change does not fit it or
// leads out of range.
func (c Change) Apply(old Rule) (Rule, error) {
	var next Rule
	switch old := old.(type) {
	case Limit:
		if _, ok := c.to.(Window); ok {
			return nil, &LimitError{Field: "change", Want: "a change of its rate or burst: the gate is a bucket"}
		}
		if c.inherit > Full {
			return nil, &LimitError{Field: "change", Value: float64(c.inherit), Want: "AsIs, Empty or Full"}
		}
		if to, ok := c.to.(Limit); ok {
			old = to
		}
		if c.hasRate {
			old.Rate = c.rate
		}
		if c.hasBurst {
			old.Burst = c.burst
		}
		next = old
	case Window:
		w, ok := c.to.(Window)
		if c.to == nil {
			w, ok = old, true
		}
		if !ok || c.hasRate || c.hasBurst || w.Kind != old.Kind {
			return nil, &LimitError{Field: "change", Want: "To a whole window, " + old.Kind.String() + " like the gate's"}
		}
		if c.inherit != AsIs {
			return nil, &LimitError{Field: "change", Value: float64(c.inherit), Want: "AsIs: the gate is a window"}
		}
		next = w
	}
	return next, next.Validate()
}

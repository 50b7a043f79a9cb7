package invoke

import (
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
)

// EventKind is what happened to a call.
type EventKind uint8

// The events of a call, in the order in which they can come. A call that neither
// waits nor floods has two: Admitted and Sent.
const (
	// Queued: the call has to wait, for tokens or for a known flood to end. Wait is
	// how long it will be, as far as is known; it is said before it is served.
	Queued EventKind = iota + 1
	// Admitted: the call is about to be sent. Wait is how long it has waited for
	// this attempt, 0 if not at all.
	Admitted
	// Sent: the call was sent and has ended, with the answer or error Err. Took is
	// the time between.
	Sent
	// Flooded: the answer was a flood. Wait is what the server ordered, Flood what
	// is known of it now.
	Flooded
	// Retried: the flood is sat out, and the call goes back to the start. Wait is
	// what is left of the flood.
	Retried
	// GivenUp: the call ends without having been sent, or with a flood that is not
	// sat out. Err is what the caller gets.
	GivenUp
	// Stopped: there was one permanent refusal too many. From now on calls of its kind are
	// not sent, until a login or [Limiter.ClearRefusals]. Err is
	// the *flood.PermanentError.
	Stopped
	// Learned: a flood has lowered the limit of the category, or of the chat. Rate is the
	// new one. The limiter sends this event.
	Learned
	// StoreLost: the limiter's store is unavailable, Err says why. The limiter sends
	// StoreLost and StoreBack once for each outage.
	StoreLost
	// StoreBack: it is available again.
	StoreBack
)

// String returns the kind in lower case, such as "given up".
func (k EventKind) String() string {
	switch k {
	case Queued:
		return "queued"
	case Admitted:
		return "admitted"
	case Sent:
		return "sent"
	case Flooded:
		return "flooded"
	case Retried:
		return "retried"
	case GivenUp:
		return "given up"
	case Stopped:
		return "stopped"
	case Learned:
		return "learned"
	case StoreLost:
		return "store lost"
	case StoreBack:
		return "store back"
	default:
		return "unknown"
	}
}

// Event is one thing that happened to one call. It holds nothing of what the call
// carries.
type Event struct {
	Kind     EventKind
	Method   string            // TL name
	Category classify.Category // what it is charged to
	Chat     classify.Peer     // 0 if none
	DC       int               // 0 for the client's own
	Attempt  int               // 1 for the first
	Wait     time.Duration
	Took     time.Duration
	Gate     string       // Queued, Admitted: the gate that it waited for most, or FloodGate; "" if none
	Pending  int          // Queued for tokens: cost of the calls at Gate that are not answered yet
	Flood    flood.Record // Flooded: what stands now
	Notice   flood.Notice // Flooded: what the server said
	Rate     float64      // Learned: in calls a second
	Err      error        // Sent, GivenUp, Stopped, StoreLost
}

// FloodGate is the Gate of an event for a call that waited for a flood to end.
const FloodGate = "flood"

// Observer receives what happens to calls. It is called from the goroutine of the
// call, without a lock held, so it has to be quick and safe for concurrent use; of a store
// that is lost or back it is told by a goroutine of its own. It may call the limiter. A
// panic is contained and logged.
type Observer interface {
	Observe(Event)
}

// ObserverFunc makes a function an [Observer].
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// Observers returns an observer that tells all of them, in order, even if one
// panics. nil ones are left out.
func Observers(all ...Observer) Observer {
	var some observers
	for _, o := range all {
		if o != nil {
			some = append(some, o)
		}
	}
	return some
}

type observers []Observer

func (all observers) Observe(e Event) {
	if len(all) == 0 {
		return
	}
	defer all[1:].Observe(e) // the others are told even if this one panics
	all[0].Observe(e)
}

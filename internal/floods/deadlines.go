package floods

import (
	"container/heap"
	"time"
)

// deadlines is a heap of what is to be looked at when its time comes, the earliest first. It
// stands in place of a walk through all that is remembered: adding, moving and removing one
// cost O(log n).
type deadlines[T timed] []T

// timed is an item of deadlines: a pointer to a struct that embeds a place.
type timed interface{ in() *place }

// place is where an item is in its heap. The zero value is in none.
type place struct {
	due   time.Time
	index int // one more than that in the slice, 0: in none
}

func (p *place) in() *place { return p }

// set adds the item, or moves it, to be looked at when due.
func (d *deadlines[T]) set(item T, due time.Time) {
	p := item.in()
	switch {
	case p.index == 0:
		p.due = due
		heap.Push(d, item)
	case !p.due.Equal(due):
		p.due = due
		heap.Fix(d, p.index-1)
	}
}

// remove takes the item out, if it is in.
func (d *deadlines[T]) remove(item T) {
	if i := item.in().index; i != 0 {
		heap.Remove(d, i-1)
	}
}

// first returns the earliest item if it is due.
func (d deadlines[T]) first(now time.Time) (item T, ok bool) {
	if len(d) == 0 || d[0].in().due.After(now) {
		return item, false
	}
	return d[0], true
}

func (d deadlines[T]) Len() int           { return len(d) }
func (d deadlines[T]) Less(i, j int) bool { return d[i].in().due.Before(d[j].in().due) }
func (d deadlines[T]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].in().index, d[j].in().index = i+1, j+1
}

// Push is for package heap.
func (d *deadlines[T]) Push(x any) {
	item := x.(T)
	*d = append(*d, item)
	item.in().index = len(*d)
}

// Pop is for package heap.
func (d *deadlines[T]) Pop() any {
	last := len(*d) - 1
	item := (*d)[last]
	var none T
	(*d)[last] = none
	*d = (*d)[:last]
	item.in().index = 0
	return item
}

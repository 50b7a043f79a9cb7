package dispatch

import (
	"context"

	"go.uber.org/zap"

	"github.com/gotd/td/tg"
)

// item is one call of a handler.
type item struct {
	ctx     context.Context
	pts     int             // 0 for an update that has no place in a sequence
	updates tg.UpdatesClass // nil for what HandleAffected gets
	handle  func(context.Context) error
	free    bool // takes no room
}

// queue holds what waits in one chat. At most one goroutine handles it.
type queue struct {
	chat  chat
	items []item
}

// insert puts an item behind all others, but in front of those that come later in its
// sequence.
func (q *queue) insert(i item) {
	at := len(q.items)
	if i.pts > 0 {
		for at > 0 && q.items[at-1].pts > i.pts {
			at--
		}
	}
	q.items = append(q.items, item{})
	copy(q.items[at+1:], q.items[at:])
	q.items[at] = i
}

func (q *queue) pop() item {
	i := q.items[0]
	q.items[0] = item{} // it must not be held for as long as the queue lives
	q.items = q.items[1:]
	return i
}

// add queues an item, or drops it where there is no room.
func (d *Dispatcher) add(c chat, i item) error {
	if d.block {
		if err := d.room.Acquire(i.ctx, 1); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		if d.block {
			d.room.Release(1)
		}
		return nil
	}
	if !d.block {
		if q := d.chats[c]; q != nil && len(q.items) >= d.maxChat || !d.room.TryAcquire(1) {
			d.drop(i)
			return nil
		}
	}
	d.push(c, i)
	return nil
}

// push queues an item and sees to it that a goroutine handles it. d.mu is held.
func (d *Dispatcher) push(c chat, i item) {
	d.waiting++
	if q := d.chats[c]; q != nil {
		q.insert(i)
		return
	}
	q := &queue{chat: c, items: []item{i}}
	d.chats[c] = q
	if d.handlers >= d.maxHandlers {
		d.ready = append(d.ready, q)
		return
	}
	d.handlers++
	d.running.Go(func() { d.work(q) })
}

// work handles a queue, and others that wait for a goroutine, until there is nothing left.
func (d *Dispatcher) work(q *queue) {
	defer func() {
		// A handler ended its goroutine, as a test does that fails in one. Another goroutine
		// goes on, or the chat would be silent. A panic ends the program: nothing waits for
		// this then.
		if q != nil {
			d.running.Go(func() { d.work(q) })
		}
	}()
	for q != nil {
		var i item
		if q, i = d.next(q); q != nil {
			d.call(i)
		}
	}
}

// next returns the queue to go on with and its first item. When other queues wait for a
// goroutine, it is their turn. It returns nil when the goroutine is not needed any more.
func (d *Dispatcher) next(q *queue) (*queue, item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refetch()
	if len(q.items) == 0 {
		delete(d.chats, q.chat)
		q = nil
	} else if len(d.ready) > 0 {
		d.ready = append(d.ready, q)
		q = nil
	}
	if q == nil {
		if len(d.ready) == 0 {
			d.handlers--
			return nil, item{}
		}
		q, d.ready = d.ready[0], d.ready[1:]
	}
	i := q.pop()
	d.waiting--
	if !i.free {
		d.room.Release(1)
	}
	return q, i
}

// drop remembers that an item found no room. d.mu is held.
func (d *Dispatcher) drop(i item) {
	if d.missed.count++; d.missed.count == 1 {
		d.logger.Warn("Too many updates are waiting for their handlers: new ones are dropped until there is room",
			zap.Int("waiting", d.waiting), zap.Int("handlers", d.handlers), zap.Bool("fetched_later", d.inOrder))
	}
	if d.inOrder {
		d.missed.note(i)
	}
}

// refetch makes an updates.Manager fetch what was dropped, once there is room. d.mu is
// held.
func (d *Dispatcher) refetch() {
	if d.missed.count == 0 || d.waiting > d.half || d.closed {
		return
	}
	dropped := d.missed
	d.missed = missed{}
	d.logger.Info("There is room for updates again", zap.Int("dropped", dropped.count))
	if !d.inOrder {
		return
	}
	for _, i := range dropped.replay(d.handler) {
		d.push(chat{}, i)
	}
}

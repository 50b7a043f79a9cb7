package dispatch

import (
	"context"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
)

// missed is what an updates.Manager has to fetch because it was dropped in front of it.
type missed struct {
	count    int
	ctx      context.Context // of the last one
	channels map[int64]item  // the first packet of each
}

func (m *missed) note(i item) {
	m.ctx = i.ctx
	for _, u := range list(i.updates) {
		id, _, _, ok, err := tg.IsChannelPtsUpdate(u)
		if !ok || err != nil {
			continue
		}
		if m.channels == nil {
			m.channels = map[int64]item{}
		}
		if _, known := m.channels[id]; !known {
			m.channels[id] = i
		}
	}
}

// replay returns what makes a Manager fetch all of it: UpdatesTooLong for what is
// numbered in common, and UpdateChannelTooLong for each channel. A Manager that does
// not know a channel would ignore that, so the channel's first packet goes ahead.
func (m *missed) replay(to telegram.UpdateHandler) (out []item) {
	add := func(ctx context.Context, u tg.UpdatesClass) {
		out = append(out, item{ctx: ctx, updates: u, free: true, handle: func(ctx context.Context) error {
			return to.Handle(ctx, u)
		}})
	}
	for id, first := range m.channels {
		add(first.ctx, first.updates)
		add(first.ctx, channelTooLong(id, 0))
	}
	add(m.ctx, &tg.UpdatesTooLong{})
	return out
}

// channelTooLong tells a Manager to fetch the difference of a channel.
func channelTooLong(id int64, pts int) tg.UpdatesClass {
	u := &tg.UpdateChannelTooLong{ChannelID: id}
	u.SetPts(pts)
	return &tg.Updates{Updates: []tg.UpdateClass{u}}
}

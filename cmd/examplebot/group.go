package main

import "sync"

// group is a WaitGroup that can be told to take no more.
type group struct {
	mu    sync.Mutex
	ended bool
	wg    sync.WaitGroup
}

// start runs f, unless the group has ended.
func (g *group) start(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.wg.Go(f)
	}
}

// end takes no more and waits for those that run.
func (g *group) end() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.wg.Wait()
}

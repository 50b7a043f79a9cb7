package persist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/internal/persist"
	"github.com/weirtg/weir/store"
)

// file is a store that may take its time, fail or hang, and says what it was asked.
type file struct {
	mu    sync.Mutex
	facts map[string]store.Fact
	news  chan store.Fact
	takes time.Duration
	fails bool
	saves int
	loads int
}

func newFile() *file { return &file{facts: map[string]store.Fact{}, news: make(chan store.Fact)} }

func (f *file) answer(ctx context.Context) error {
	f.mu.Lock()
	takes, fails := f.takes, f.fails
	f.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
	if fails {
		return store.ErrUnavailable
	}
	return nil
}

func (f *file) set(takes time.Duration, fails bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes, f.fails = takes, fails
}

func (f *file) Load(ctx context.Context) ([]store.Fact, error) {
	if err := f.answer(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	return slices.Collect(maps.Values(f.facts)), nil
}

func (f *file) Save(ctx context.Context, facts ...store.Fact) error {
	if err := f.answer(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saves++
	for _, fact := range facts {
		if fact.Value == nil {
			delete(f.facts, fact.Key)
		} else {
			f.facts[fact.Key] = fact
		}
	}
	return nil
}

func (f *file) Watch(ctx context.Context, told func(store.Fact)) error {
	for {
		select {
		case fact := <-f.news:
			told(fact)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *file) text(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.facts[key].Value)
}

// things is a source of facts that count.
type things struct {
	journal *persist.Journal
	mu      sync.Mutex
	counts  map[string]int
	began   map[string]time.Time
	told    []string
}

type thing struct {
	Count int `json:"count"`
}

func (*things) Prefix() string { return "thing/" }

func (s *things) set(key string, count int, urgent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[key] = count
	if s.began[key].IsZero() {
		s.began[key] = time.Now()
	}
	s.journal.Mark(key, urgent)
}

func (s *things) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal.Ended(key, s.began[key])
	delete(s.counts, key)
	delete(s.began, key)
}

func (s *things) Fact(key string) (store.Fact, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, ok := s.counts[key]
	text, _ := json.Marshal(thing{count})
	return store.Fact{Key: key, Value: text, Until: time.Now().Add(time.Hour), Began: s.began[key]}, ok
}

func (s *things) Restore(f store.Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf("%s %s", f.Key, f.Value))
}

func (s *things) heard() (told []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told, s.told = s.told, nil
	return told
}

// start returns a keeper of things, which is closed with the test.
func start(t *testing.T, f *file) (*persist.Keeper, *things) {
	t.Helper()
	k := persist.New(persist.Options{Facts: f, Clock: clock.System, Health: store.NewHealth(store.HealthOptions{})})
	s := &things{journal: k.Journal(), counts: map[string]int{}, began: map[string]time.Time{}}
	k.Add(s, time.Hour)
	require.NoError(t, k.Start(store.FailClosed))
	t.Cleanup(k.Close)
	return k, s
}

func TestFactIsSavedAsItStandsWhenItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		k, s := start(t, f)
		f.set(time.Second, false)
		s.set("thing/a", 1, true)
		go k.Remember(t.Context())
		synctest.Wait()
		s.set("thing/b", 1, true)
		s.set("thing/a", 2, true) // while the first is on its way
		s.set("thing/a", 3, true)
		k.Remember(t.Context())
		require.Contains(t, f.text("thing/a"), `"count":3`)
		require.Contains(t, f.text("thing/b"), `"count":1`)
		require.Equal(t, 2, f.saves)
		s.forget("thing/b")
		k.Remember(t.Context())
		require.Empty(t, f.text("thing/b"))
	})
}

func TestCallsThatChangeSomethingTogetherShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		k, s := start(t, f)
		f.set(100*time.Millisecond, false)
		start := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				s.set(fmt.Sprint("thing/", i), 1, true)
				k.Remember(t.Context())
			})
		}
		all.Wait()
		require.LessOrEqual(t, f.saves, 2)
		require.Len(t, f.facts, 100, "whoever returned has had its own saved")
		require.LessOrEqual(t, time.Since(start), 200*time.Millisecond)
	})
}

func TestGrowthIsWrittenEveryTenSecondsAndHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		k, s := start(t, f)
		f.set(time.Second, false)
		for i := range 300 {
			s.set("thing/a", i, false)
			before := time.Now()
			k.Remember(t.Context())
			require.Zero(t, time.Since(before))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		require.InDelta(t, 3, f.saves, 1)
		k.Close()
		require.Contains(t, f.text("thing/a"), `"count":299`, "the rest is saved in the end")
	})
}

func TestStoreIsNotAskedWhenThereIsNothingToSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		k, s := start(t, f)
		for range 1000 {
			k.Remember(t.Context())
			time.Sleep(time.Second)
		}
		s.set("thing/a", 1, true)
		for range 10 {
			k.Remember(t.Context())
		}
		time.Sleep(time.Hour)
		require.Equal(t, 1, f.saves)
		require.Equal(t, 1, f.loads, "at the start")
	})
}

// What has ended here may be on its way from the store: as this process saved it, or another.
func TestStoreThatTellsOfWhatHasEndedBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		k, s := start(t, f)
		s.set("thing/a", 1, true)
		k.Remember(t.Context())
		old := f.facts["thing/a"]
		require.JSONEq(t, fmt.Sprintf(`{"began":%q,"count":1}`, time.Now().UTC().Format(time.RFC3339Nano)), string(old.Value))
		nameless := old
		nameless.Value = []byte(`{"count":7}`) // of a version that did not say when it began
		time.Sleep(time.Second)
		s.forget("thing/a")
		tell := func(fact store.Fact) {
			f.news <- fact
			synctest.Wait()
		}
		tell(old) // before it is written that it has ended
		k.Remember(t.Context())
		tell(old)
		tell(nameless)
		require.Empty(t, s.heard())
		later := old
		later.Value = fmt.Appendf(nil, `{"count":2,"began":%q}`, time.Now().Format(time.RFC3339Nano))
		tell(later)
		require.Equal(t, []string{"thing/a " + string(later.Value)}, s.heard(), "that is another")
		tell(store.Fact{Key: "thing/a"})
		require.Equal(t, []string{"thing/a "}, s.heard(), "so is its end")
		time.Sleep(time.Minute + 1)
		tell(old)
		tell(nameless)
		require.Len(t, s.heard(), 2, "no store is that late")
	})
}

func TestFactsThatNoSourceKnowsOrThatLastTooLongAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		for key, lasts := range map[string]time.Duration{"thing/a": time.Hour, "thing/b": 26 * time.Hour, "other/a": time.Hour} {
			f.facts[key] = store.Fact{Key: key, Value: []byte(`{}`), Until: time.Now().Add(lasts)}
		}
		var doubted []string
		k := persist.New(persist.Options{
			Facts: f, Clock: clock.System, Health: store.NewHealth(store.HealthOptions{}),
			Doubt: func(fact store.Fact) { doubted = append(doubted, fact.Key) },
		})
		s := &things{}
		k.Add(s, time.Hour)
		require.NoError(t, k.Start(store.FailClosed))
		defer k.Close()
		require.Equal(t, []string{"thing/a {}"}, s.heard())
		require.Equal(t, []string{"thing/b"}, doubted)
	})
}

func TestNobodyWaitsForAStoreThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile()
		k, s := start(t, f)
		f.set(time.Hour, true)
		s.set("thing/a", 1, true)
		began := time.Now()
		k.Remember(t.Context())
		require.Equal(t, 2*time.Second, time.Since(began), "the first finds out")
		began = time.Now()
		for i := range 100 {
			s.set(fmt.Sprint("thing/", i), 1, true)
			k.Remember(t.Context())
		}
		require.Zero(t, time.Since(began))
		f.set(0, false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, f.facts, 101)
	})
}

func TestNoStoreKeepsNothing(t *testing.T) {
	k := persist.New(persist.Options{})
	require.Nil(t, k)
	k.Add(&things{}, time.Hour)
	require.NoError(t, k.Start(store.FailClosed))
	k.Journal().Mark("thing/a", true)
	k.Journal().Ended("thing/a", time.Time{})
	k.Remember(t.Context())
	k.Recall(t.Context(), "")
	k.Close()
}

package cache_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/selvage/selvage/internal/cache"
)

// A source counts how many times it is read.
type source struct {
	reads int
	err   error
}

func (s *source) read() (int, error) {
	s.reads++
	return s.reads, s.err
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[int](time.Now)
		s := &source{}
		want := func(what string, value int) {
			t.Helper()
			if got, err := c.Load("a", s.read); got != value || err != nil {
				t.Errorf("%s: Load = %d, %v, want %d", what, got, err, value)
			}
		}

		want("first", 1)
		time.Sleep(cache.For*5/6 - time.Nanosecond)
		want("before the entry is renewed", 1)
		time.Sleep(cache.For)
		want("after the entry has expired", 2)
		c.Drop("a")
		want("after Drop", 3)
		c.Clear()
		want("after Clear", 4)
		for i := range 25_000 {
			_, _ = c.Load(string(rune(i)), (&source{}).read)
		}

		if got, err := c.Load(string(rune(24_999)), s.read); got != 1 || err != nil {
			t.Errorf("Load of the newest of many = %d, %v, want 1", got, err)
		}
	})
}

// TestRenew shows that one caller renews a value shortly before it expires. Until then, the others
// get the old value.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[int](time.Now)
		s := &source{}
		for range 10 {
			if _, err := c.Load("a", s.read); err != nil {
				t.Fatal(err)
			}
		}

		time.Sleep(cache.For - time.Millisecond)
		renewed, err := c.Load("a", func() (int, error) {
			if old, err := c.Load("a", s.read); old != 1 || err != nil {
				t.Errorf("Load while another caller reads = %d, %v, want 1", old, err)
			}
			time.Sleep(time.Millisecond)
			if new, err := c.Load("a", s.read); new != 2 || err != nil {
				t.Errorf("Load when the old value has expired = %d, %v, want 2", new, err)
			}
			return 3, nil
		})
		if renewed != 3 || err != nil || s.reads != 2 {
			t.Errorf("Load = %d, %v after %d other reads, want 3 after 2", renewed, err, s.reads)
		}
	})
}

// TestLoadWhileDropped shows that a value is not kept if it was read before a change.
func TestLoadWhileDropped(t *testing.T) {
	c := cache.New[string](time.Now)
	got, err := c.Load("a", func() (string, error) {
		c.Drop("a") // a change between reading and storing
		return "old", nil
	})
	if got != "old" || err != nil {
		t.Errorf("Load = %q, %v, want old", got, err)
	}
	if got, err = c.Load("a", func() (string, error) { return "new", nil }); got != "new" || err != nil {
		t.Errorf("Load after a change = %q, %v, want new", got, err)
	}
}

// TestSweep shows that a cache that nobody reads frees its values, and keeps later ones again.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[*source](time.Now)
		for range 2 {
			var kept weak.Pointer[source]
			reads := 0
			for range 2 {
				_, err := c.Load("a", func() (*source, error) {
					reads++
					s := &source{reads: reads}
					kept = weak.Make(s)
					return s, nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			runtime.GC()
			if reads != 1 || kept.Value() == nil {
				t.Errorf("%d reads, value %v, want one that is kept", reads, kept.Value())
			}

			time.Sleep(11 * time.Second)
			synctest.Wait()
			runtime.GC()
			if kept.Value() != nil {
				t.Error("an expired value is still in memory")
			}
		}
		runtime.KeepAlive(c)
	})
}

// TestClockBack shows that an old value does not count as fresh when the clock is set back.
func TestClockBack(t *testing.T) {
	now := time.Now()
	c, s := cache.New[int](func() time.Time { return now }), &source{}
	for i, step := range []time.Duration{0, -time.Hour, time.Hour} {
		now = now.Add(step)
		if got, err := c.Load("a", s.read); got != i+1 || err != nil {
			t.Errorf("Load after a step of %v = %d, %v, want another read", step, got, err)
		}
	}
}

func TestLoadFails(t *testing.T) {
	c, s := cache.New[int](time.Now), &source{err: errors.New("away")}
	for want := range 2 {
		if got, err := c.Load("a", s.read); got != want+1 || !errors.Is(err, s.err) {
			t.Errorf("Load = %d, %v, want %d and the error", got, err, want+1)
		}
	}
}

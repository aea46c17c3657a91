package cache_test

import (
	"errors"
	"runtime"
	"strconv"
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
		checkLoad := func(when string, want int) {
			t.Helper()
			if got, err := c.Load("a", s.read); err != nil || got != want {
				t.Errorf("Load %s = %d, %v, want %d", when, got, err, want)
			}
		}

		checkLoad("from an empty cache", 1)
		time.Sleep(cache.For*5/6 - time.Nanosecond)
		checkLoad("before the entry is renewed", 1)
		time.Sleep(cache.For)
		checkLoad("after the entry has expired", 2)
		c.Drop("a")
		checkLoad("after Drop", 3)
		c.Clear()
		checkLoad("after Clear", 4)
	})
}

// TestFull shows that a cache keeps its newest value even when there are more values than it holds.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[int](time.Now)
		for i := range 25_000 {
			if _, err := c.Load(strconv.Itoa(i), (&source{}).read); err != nil {
				t.Fatal(err)
			}
		}

		newest := &source{reads: 1}
		if got, err := c.Load("24999", newest.read); err != nil || got != 1 {
			t.Errorf("Load of the newest value = %d, %v, want 1, the value in the cache", got, err)
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
		got, err := c.Load("a", func() (int, error) {
			if got, err := c.Load("a", s.read); err != nil || got != 1 {
				t.Errorf("Load while another caller reads = %d, %v, want 1", got, err)
			}
			time.Sleep(time.Millisecond)
			if got, err := c.Load("a", s.read); err != nil || got != 2 {
				t.Errorf("Load when the old value has expired = %d, %v, want 2", got, err)
			}
			return 3, nil
		})
		if err != nil || got != 3 {
			t.Errorf("Load by the caller that renews the value = %d, %v, want 3", got, err)
		}
		if s.reads != 2 {
			t.Errorf("the other callers have read the source %d times, want 2", s.reads)
		}
	})
}

// TestLoadWhileDropped shows that a value is not kept if it was read before a change.
func TestLoadWhileDropped(t *testing.T) {
	c := cache.New[string](time.Now)
	readOld := func() (string, error) {
		c.Drop("a") // a change between reading and storing
		return "old", nil
	}
	if got, err := c.Load("a", readOld); err != nil || got != "old" {
		t.Errorf("Load during a change = %q, %v, want old", got, err)
	}

	readNew := func() (string, error) { return "new", nil }
	if got, err := c.Load("a", readNew); err != nil || got != "new" {
		t.Errorf("Load after a change = %q, %v, want new", got, err)
	}
}

// TestSweep shows that a cache that nobody reads frees its values, and that it keeps new values
// after that.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[*source](time.Now)
		for range 2 {
			var kept weak.Pointer[source]
			reads := 0
			read := func() (*source, error) {
				reads++
				s := &source{reads: reads}
				kept = weak.Make(s)
				return s, nil
			}
			for range 2 {
				if _, err := c.Load("a", read); err != nil {
					t.Fatal(err)
				}
			}
			runtime.GC()
			if reads != 1 {
				t.Errorf("two calls of Load read %d times, want 1", reads)
			}
			if kept.Value() == nil {
				t.Error("the value is no longer in memory, want it kept")
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
		want := i + 1
		if got, err := c.Load("a", s.read); err != nil || got != want {
			t.Errorf("Load after a step of %v = %d, %v, want %d, a new value", step, got, err, want)
		}
	}
}

// TestLoadFails shows that an error is returned together with the value, and that neither is kept.
func TestLoadFails(t *testing.T) {
	c, s := cache.New[int](time.Now), &source{err: errors.New("away")}
	for _, want := range []int{1, 2} {
		if got, err := c.Load("a", s.read); got != want || !errors.Is(err, s.err) {
			t.Errorf("Load = %d, %v, want %d, %v", got, err, want, s.err)
		}
	}
}

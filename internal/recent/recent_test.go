package recent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/recent"
)

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := recent.New[int](time.Now)
		c.Put("a", 1)
		time.Sleep(recent.For - time.Nanosecond)
		if got, ok := c.Get("a"); got != 1 || !ok {
			t.Errorf("Get just before the end = %d, %v, want 1", got, ok)
		}
		time.Sleep(time.Nanosecond)
		if got, ok := c.Get("a"); ok {
			t.Errorf("Get at the end = %d, want nothing", got)
		}
		c.Put("b", 2)
		c.Drop("b")
		if got, ok := c.Get("b"); ok {
			t.Errorf("Get after Drop = %d, want nothing", got)
		}
		for i := range 25_000 {
			c.Put(string(rune(i)), i)
		}
		if got, ok := c.Get(string(rune(24_999))); got != 24_999 || !ok {
			t.Errorf("Get of the newest of many = %d, %v, want 24999", got, ok)
		}
	})
}

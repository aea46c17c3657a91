package password

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// While there are hashes the runtime has room for them, however many there are, and none
// after that.
func TestRoom(t *testing.T) {
	runtime.SetDefaultGOMAXPROCS()
	before := runtime.GOMAXPROCS(0)
	h := Weak(3)
	h.MakeRoom()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			err := h.run(t.Context(), func() error {
				if got := runtime.GOMAXPROCS(0); got != before+3 {
					t.Errorf("beside hashes GOMAXPROCS is %d, want %d and 3", got, before)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for end := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute after the last hash GOMAXPROCS is %d, want %d", runtime.GOMAXPROCS(0), before)
		}
	}
}

// A hash stands behind on its own thread, and leaves none behind that does.
func TestAside(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads have priorities of their own on Linux")
	}
	nice := func() int {
		stat, err := os.ReadFile("/proc/thread-self/stat")
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		n, err := strconv.Atoi(fields[16])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ours, h := nice(), Weak(1)
	for range 3 {
		if err := h.run(t.Context(), func() error {
			if got := nice(); got < 10 {
				t.Errorf("the thread of a hash is %d nice, want 10 at least", got)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if got := nice(); got != ours {
				t.Errorf("another thread is %d nice, want %d", got, ours)
			}
		})
	}
	all.Wait()
	func() {
		defer func() {
			if recover() != "broken" {
				t.Error("a panic is lost on the way")
			}
		}()
		_ = aside(func() error { panic("broken") })
	}()
}

package deliver

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	var sum time.Duration
	for i, about := range delays {
		attempt := i + 1
		d, again := delay(attempt, 0)
		if !again {
			t.Errorf("attempt %d is the last, want another attempt after %v", attempt, about)
		}
		if d < about*8/10 || d > about*12/10 {
			t.Errorf("delay after attempt %d = %v, want %v, or up to a fifth more or less", attempt, d, about)
		}
		sum += d
	}
	if sum < 16*time.Hour || sum > 30*time.Hour {
		t.Errorf("all delays add up to %v, want about a day", sum)
	}

	if d, again := delay(len(delays)+1, 0); again {
		t.Errorf("delay after the last attempt = %v, want none", d)
	}
	if d, _ := delay(1, 90*time.Second); d != 90*time.Second {
		t.Errorf("delay with a Retry-After of 90 s = %v, want 90 s", d)
	}
	if d, _ := delay(1, 1000*time.Hour); d != longestDelay {
		t.Errorf("delay with a Retry-After of 1000 h = %v, want %v", d, longestDelay)
	}

	if d, _ := delay(5, time.Second); d < 40*time.Minute {
		t.Errorf("delay with a shorter Retry-After = %v, want about an hour", d)
	}
}

func TestRest(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0:       0,
		2:       0,
		3:       10 * time.Second,
		4:       20 * time.Second,
		9:       10 * time.Minute,
		1 << 40: 10 * time.Minute,
	} {
		if got := rest(failures); got != want {
			t.Errorf("rest(%d) = %v, want %v", failures, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":              0,
		"5":             5 * time.Second,
		"-5":            0,
		"x":             0,
		"9999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestSettled(t *testing.T) {
	now := time.Now()
	v := &visit{d: New(Config{}), receiver: Receiver{ID: "r"}}

	for _, tt := range []struct {
		answer   answer
		attempts int // before this one
		want     State
	}{
		{answer{status: 200}, 0, Delivered},
		{answer{status: 299}, 8, Delivered},
		{answer{status: 302}, 0, Pending},
		{answer{status: 404}, 0, Pending},
		{answer{status: 500}, 7, Pending},
		{answer{err: "x"}, 0, Pending},
		{answer{status: 410}, 0, Dead},
		{answer{status: 500}, 8, Dead},
		{answer{err: "x"}, 8, Dead},
	} {
		t.Run(fmt.Sprintf("%+v after %d attempts", tt.answer, tt.attempts), func(t *testing.T) {
			got := v.settled(Job{ID: "j", Attempts: tt.attempts}, tt.answer, now)
			if got.State != tt.want {
				t.Errorf("the state is %s, want %s", got.State, tt.want)
			}
			if want := tt.attempts + 1; got.Attempts != want {
				t.Errorf("the number of attempts is %d, want %d", got.Attempts, want)
			}

			again := tt.want == Pending
			if ended := !got.Ended.IsZero(); ended == again {
				t.Errorf("the delivery has ended: %t, want %t", ended, !again)
			}
			if due := got.Due.After(now); due != again {
				t.Errorf("another attempt is due: %t, want %t", due, again)
			}
		})
	}
}

// TestReason shows that the reason for a failure reveals nothing about the network, and no part of
// the URL.
func TestReason(t *testing.T) {
	client := &http.Client{}
	for url, want := range map[string]string{
		"http://127.0.0.1:1/?token=secret": "connecting to the server failed",
		"http://no.such.invalid/":          "the host name cannot be resolved",
	} {
		t.Run(url, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
			if err != nil {
				t.Fatal(err)
			}

			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
				t.Fatalf("the server returned %s, want an error", resp.Status)
			}
			if got := reason(err); got != want {
				t.Errorf("reason of %v = %q, want %q", err, got, want)
			}
		})
	}
}

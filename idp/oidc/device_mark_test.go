package oidc_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// newKnownDevice returns a browser in which the subscriber signed in before strangers used up the
// limits of the account and the network.
func newKnownDevice(t *testing.T) (w *world, c idp.Client, home *browser) {
	t.Helper()
	w = newWorld(t)
	w.limits.Set(limit.Rates{
		limit.LoginPerAccount: {Burst: 3, Every: 4 * time.Minute},
		limit.LoginPerDevice:  {Burst: 3, Every: 4 * time.Minute},
		limit.LoginPerNetwork: {Burst: 5, Every: time.Hour},
	})
	c, _ = w.client(nil)
	home = w.newBrowser()
	home.code(c)

	w.newBrowser().guesses(c, email, 3)
	w.newBrowser().guesses(c, "somebody@example.com", 2) // uses up the network's limit
	return w, c, home
}

// loginAgain opens the login page in a browser that is signed in.
func loginAgain(b *browser, c idp.Client) reply { return b.authorize(request(c, "prompt", "login")) }

// TestKnownDevice shows that strangers' guesses do not lock out a device that signed in before. The
// device has its own count, with the same limit as strangers, and is not locked out for long.
func TestKnownDevice(t *testing.T) {
	w, c, home := newKnownDevice(t)
	got := home.logIn(loginAgain(home, c), email, secret)
	wantStatus(t, "a login from a known device", got, http.StatusSeeOther)

	page := loginAgain(home, c)
	for range 3 {
		page = home.logIn(page, email, "wrong-guess")
	}
	got = home.logIn(page, email, secret)
	wantStatus(t, "a login from a known device after three wrong passwords", got, http.StatusTooManyRequests)

	w.pass(4 * time.Minute)
	got = home.logIn(loginAgain(home, c), email, secret)
	wantStatus(t, "a login from a known device after the wait", got, http.StatusSeeOther)
}

// TestDeviceOfOther shows that a device that signed in to another account counts as a stranger's
// device.
func TestDeviceOfOther(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 3, Every: 4 * time.Minute}})
	c, _ := w.client(nil)
	other, theirs := w.subscriber("grace@example.com"), w.newBrowser()
	theirs.logIn(theirs.authorize(request(c)), other.Email, secret)

	w.newBrowser().guesses(c, email, 3)
	got := theirs.logIn(loginAgain(theirs, c), email, secret)
	wantStatus(t, "a login from a device of another account", got, http.StatusTooManyRequests)
}

// TestForgedMark shows that altered marks and marks of other accounts do not count.
func TestForgedMark(t *testing.T) {
	w, _, _ := newKnownDevice(t)
	good, _ := w.idp.DeviceMarks.Mark("", w.ada, false)
	other, _ := w.idp.DeviceMarks.Mark("", w.subscriber("grace@example.com"), false)

	// A mark consists of an ID and, for each account, an expiry and a MAC.
	id, code, _ := strings.Cut(good, ".")
	otherID, _, _ := strings.Cut(other, ".")
	expiry, mac, _ := strings.Cut(code, "-")
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	must(t, err)
	later := strconv.FormatInt(seconds+1, 10)

	for name, mark := range map[string]string{
		"no mark":                   "",
		"no ID":                     ".",
		"another account's mark":    other,
		"another mark's ID":         otherID + "." + code,
		"a later expiry":            id + "." + later + "-" + mac,
		"no MAC":                    id + "." + expiry + "-",
		"only the ID":               id,
		"a letter appended":         good + "x",
		"upper case":                strings.ToUpper(good),
		"a NUL before it":           "\x00" + good,
		"the mark repeated 20-fold": strings.Repeat(good, 20),
	} {
		visitor := idp.Visitor{Network: "192.0.2.1", Device: mark}
		if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, visitor); err == nil {
			t.Errorf("%s: the forged mark %q is accepted", name, mark)
		}
	}

	visitor := idp.Visitor{Device: good}
	if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, visitor); err != nil {
		t.Errorf("a valid mark is refused: %v", err)
	}
}

// TestMarkExpires shows that after half a year, a known device counts as a stranger's device again.
func TestMarkExpires(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 1, Every: 200 * 24 * time.Hour}})
	c, _ := w.client(nil)
	edsger := w.subscriber("edsger@example.com")
	mark, _ := w.idp.DeviceMarks.Mark("", edsger, false)
	w.newBrowser().guesses(c, edsger.Email, 1)
	w.pass(181 * 24 * time.Hour)
	visitor := idp.Visitor{Device: mark}
	if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, edsger.Email, secret, visitor); err == nil {
		t.Error("a mark is accepted after half a year")
	}
}

// TestDeviceMark shows that a mark names only a few accounts, most recent first. Its size is
// therefore limited.
func TestDeviceMark(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 1, Every: time.Hour}})
	mark := ""
	for i := range 40 {
		mark, _ = w.idp.DeviceMarks.Mark(mark, fabric.Subscriber{ID: fmt.Sprint("subscriber-", i%8)}, false)
	}

	mark, kept := w.idp.DeviceMarks.Mark(mark, w.ada, false)
	again, _ := w.idp.DeviceMarks.Mark(mark, w.ada, false)
	if len(mark) > 512 {
		t.Errorf("the mark has %d bytes, want at most 512", len(mark))
	}
	if kept < 90*24*time.Hour {
		t.Errorf("the mark is kept for %v, want at least 90 days", kept)
	}
	if len(again) != len(mark) {
		t.Errorf("marking the account again grows the mark from %d to %d bytes", len(mark), len(again))
	}
	for range 3 {
		visitor := idp.Visitor{Device: again}
		if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, visitor); err != nil {
			t.Errorf("a login with the mark: %v", err)
		}
	}
}

// TestDeviceOfAnotherPassword shows that once the password has changed, older marks no longer exempt
// a device from the limits for strangers.
func TestDeviceOfAnotherPassword(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 1, Every: time.Hour}})
	mark, _ := w.idp.DeviceMarks.Mark("", w.ada, false)

	fresh := "granite-otter-nine"
	changed, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Password: &fresh})
	must(t, err)

	c, _ := w.client(nil)
	w.newBrowser().guesses(c, email, 1)
	_, err = w.idp.Logins.LogIn(t.Context(), w.project.ID, email, fresh, idp.Visitor{Device: mark})
	if !errors.Is(err, problem.RateLimited) {
		t.Errorf("a login with a mark from before the new password: %v, want it throttled", err)
	}

	mark, _ = w.idp.DeviceMarks.Mark(mark, changed, false)
	_, err = w.idp.Logins.LogIn(t.Context(), w.project.ID, email, fresh, idp.Visitor{Device: mark})
	if err != nil {
		t.Errorf("a login with a mark from after the new password: %v, want it accepted", err)
	}
}

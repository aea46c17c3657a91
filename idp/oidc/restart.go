package oidc

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A login whose request is gone starts over by itself: the browser keeps the address at
// which it started, and is sent there again with the email that was typed. A person could
// do the same by reloading the app. It grants nothing beyond the address, since all of
// the request is checked again.

// restartCookie holds the browser's newest request: its id, when it started, and where.
const restartCookie = "selvage-again"

const (
	maxStart      = 1500             // longer addresses are not kept
	restartWithin = 24 * time.Hour   // later, the app has forgotten its request, too
	restartAfter  = 10 * time.Second // a request that is gone sooner would be gone again
)

// errRequestGone is errStale for requests that are gone and may start over.
var errRequestGone = pageError(http.StatusBadRequest, "error.over", "error.over-text")

// rememberStart notes how a request of r's browser started, if r started it.
func (pg *pages) rememberStart(w http.ResponseWriter, r *http.Request, id string) {
	from := r.URL.RequestURI()
	if r.Method != http.MethodGet || len(from) > maxStart || !begins(from) {
		return
	}
	pg.cookies.Set(w, r, restartCookie, id+"."+strconv.FormatInt(pg.Now().Unix(), 10)+"."+
		base64.RawURLEncoding.EncodeToString([]byte(from)))
}

// forgetStart keeps an answered request from starting over.
func (pg *pages) forgetStart(w http.ResponseWriter, r *http.Request) {
	if pg.cookies.Read(r, restartCookie) != "" {
		pg.cookies.Set(w, r, restartCookie, "")
	}
}

// begins reports whether requests start at an address.
func begins(address string) bool {
	path, _, _ := strings.Cut(ownPath(address), "?")
	return path == authorizePath || path == "/account"
}

// startOf returns where the request with an id started in r's browser, or "".
func (pg *pages) startOf(r *http.Request, id string) string {
	kept := strings.SplitN(pg.cookies.Read(r, restartCookie), ".", 3)
	if len(kept) != 3 || id == "" || kept[0] != id {
		return ""
	}
	began, err := strconv.ParseInt(kept[1], 10, 64)
	if old := pg.Now().Sub(time.Unix(began, 0)); err != nil || old < restartAfter || old > restartWithin {
		return ""
	}
	from, err := base64.RawURLEncoding.DecodeString(kept[2])
	if err != nil || len(from) > maxStart || !begins(string(from)) {
		return ""
	}
	return ownPath(string(from))
}

// restart redirects to where the request of r started, if err is errRequestGone and the start is
// known.
func (pg *pages) restart(w http.ResponseWriter, r *http.Request, err error) bool {
	if !errors.Is(err, errRequestGone) {
		return false
	}

	id := r.URL.Query().Get("id")
	if r.Method == http.MethodPost {
		id = r.PostForm.Get("id")
	}
	u, err := url.Parse(pg.startOf(r, id))
	if err != nil || u.Path == "" {
		return false
	}

	q := u.Query()
	if typed := shortened(r.PostForm.Get("username")); typed != "" && u.Path == authorizePath {
		q.Set("login_hint", typed)
	}
	q.Set(restartParam, "1")
	u.RawQuery = q.Encode()

	pg.forgetStart(w, r)
	seeOther(w, u.String())
	return true
}

// restartParam marks a request that was started over, so that the page says so.
const restartParam = "selvage_again"

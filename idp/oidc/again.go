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

// A sign-in whose request is gone begins anew by itself: the browser keeps the address by
// which it began, and is led there again, with the e-mail that was typed. That is what a
// person would do who goes back to the app and reloads it, and gives nobody more than the
// address does: all of it is checked again.

// againCookie holds the newest request of the browser: its id, when it began, and where.
const againCookie = "selvage-again"

const (
	maxAgain    = 1500             // of the address: longer ones are not kept
	againWithin = 24 * time.Hour   // after that the app has forgotten its request, too
	againAfter  = 10 * time.Second // a request that is gone at once would be so again
)

// errGone is errStale where the request is not there any more, and may begin anew.
var errGone = pageError(http.StatusBadRequest, "error.over", "error.over-text")

// rememberStart notes how a request of r's browser began, if r is what began it.
func (pg *pages) rememberStart(w http.ResponseWriter, r *http.Request, id string) {
	from := r.URL.RequestURI()
	if r.Method != http.MethodGet || len(from) > maxAgain || !begins(from) {
		return
	}
	pg.cookies.Set(w, r, againCookie, id+"."+strconv.FormatInt(pg.Now().Unix(), 10)+"."+
		base64.RawURLEncoding.EncodeToString([]byte(from)))
}

// forgetStart has a request that was answered not begin anew.
func (pg *pages) forgetStart(w http.ResponseWriter, r *http.Request) {
	if pg.cookies.Read(r, againCookie) != "" {
		pg.cookies.Set(w, r, againCookie, "")
	}
}

// begins reports whether an address is one of those by which requests begin.
func begins(address string) bool {
	path, _, _ := strings.Cut(ownPath(address), "?")
	return path == authorizePath || path == "/account"
}

// startOf returns where the request of an id began in r's browser, or "".
func (pg *pages) startOf(r *http.Request, id string) string {
	kept := strings.SplitN(pg.cookies.Read(r, againCookie), ".", 3)
	if len(kept) != 3 || id == "" || kept[0] != id {
		return ""
	}
	began, err := strconv.ParseInt(kept[1], 10, 64)
	if old := pg.Now().Sub(time.Unix(began, 0)); err != nil || old < againAfter || old > againWithin {
		return ""
	}
	from, err := base64.RawURLEncoding.DecodeString(kept[2])
	if err != nil || len(from) > maxAgain || !begins(string(from)) {
		return ""
	}
	return ownPath(string(from))
}

// restart leads to where the request of r began, if it is gone and can be had again.
func (pg *pages) restart(w http.ResponseWriter, r *http.Request, err error) bool {
	if !errors.Is(err, errGone) {
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
	q.Set(againParam, "1")
	u.RawQuery = q.Encode()
	pg.forgetStart(w, r)
	seeOther(w, u.String())
	return true
}

// againParam marks a request that was begun anew: the page says so.
const againParam = "selvage_again"

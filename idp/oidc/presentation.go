package oidc

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// A presentation is what is learned on the way about how a request is answered, with
// pages and errors alike, wherever they are written.
type presentation struct {
	locales string     // ui_locales of its authorization request
	account string     // the language of its subscriber
	client  idp.Client // for which pages are shown, or zero
}

type presentationKey struct{}

// withPresentation lets the handlers of pages note a presentation.
func withPresentation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), presentationKey{}, new(presentation))))
	})
}

// presentationOf returns what was noted about r. Without [withPresentation], notes are lost.
func presentationOf(r *http.Request) *presentation {
	if m, ok := r.Context().Value(presentationKey{}).(*presentation); ok {
		return m
	}
	return new(presentation)
}

// words returns the language of r: what the app asks for, otherwise that of the account,
// otherwise what was chosen in the browser, otherwise what the browser prefers.
func (pg *pages) words(r *http.Request) *words.Words {
	m := presentationOf(r)
	asked := cmp.Or(m.locales, r.URL.Query().Get("ui_locales"))
	return words.Choose(strings.Join(strings.Fields(asked), ","), m.account, web.Language(r),
		r.Header.Get("Accept-Language"))
}

// view returns how pages are shown to the browser of r.
func (pg *pages) view(r *http.Request) templates.View {
	return templates.View{Theme: web.Theme(r), Words: pg.words(r), Back: backOf(r), Brand: pg.brand(r)}
}

// maxLocales is the maximum length of the ui_locales that a page passes on.
const maxLocales = 200

// formAt returns the address of a form on the page of r. Its response is in the language
// that the page was requested in.
func formAt(r *http.Request, path string) string {
	asked := r.URL.Query().Get("ui_locales")
	if asked == "" || len(asked) > maxLocales {
		return path
	}
	return path + "?ui_locales=" + url.QueryEscape(asked)
}

// backOf returns the address of the page of r, or "" if it cannot be requested again.
func backOf(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	if id := r.PostForm.Get("id"); id != "" {
		return r.URL.Path + "?id=" + url.QueryEscape(id)
	}
	return ""
}

// ownPath returns a path on this host, or "/" for anything else: nothing leads away.
func ownPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.ContainsAny(raw, "\\\r\n\t") {
		return "/"
	}
	return u.RequestURI()
}

// changeLanguage serves POST /language, the switch at the foot of a page. It also
// overrides what the app asked for.
func (pg *pages) changeLanguage(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	to := ownPath(form.Get("back"))
	chosen := words.In(form.Get("language"))
	if chosen == nil {
		seeOther(w, to)
		return nil
	}

	pg.cookies.SetLanguage(w, r, chosen.Tag)

	u, err := url.Parse(to)
	if err != nil {
		seeOther(w, to)
		return nil
	}
	if q := u.Query(); q.Has("ui_locales") { // such as in the link of a mail
		q.Set("ui_locales", chosen.Tag)
		u.RawQuery = q.Encode()
		to = u.RequestURI()
	}

	if id := u.Query().Get("id"); id != "" {
		if err := pg.setRequestLanguage(r, id, chosen.Tag); err != nil {
			return err
		}
	}
	seeOther(w, to)
	return nil
}

// setRequestLanguage changes the language of a request of this browser. A request that
// has ended is left alone.
func (pg *pages) setRequestLanguage(r *http.Request, id, language string) error {
	req, _, err := pg.Requests.Resume(r.Context(), id, pg.cookies.FlowOf(r))
	if err != nil {
		return nil // the page says what is wrong
	}
	req.UILocales = language
	return pg.Requests.Suspend(r.Context(), req)
}

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

// A presentation collects what handlers learn about the language and branding of a request's pages.
// All code that writes a page or an error uses it.
type presentation struct {
	locales string     // ui_locales of the authorization request
	account string     // language of the subscriber
	client  idp.Client // client for which pages are shown; may be zero
}

type presentationKey struct{}

// withPresentation adds an empty presentation to each request.
func withPresentation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), presentationKey{}, new(presentation))))
	})
}

// presentationOf returns the presentation of r. Without [withPresentation], changes to it are lost.
func presentationOf(r *http.Request) *presentation {
	if shown, ok := r.Context().Value(presentationKey{}).(*presentation); ok {
		return shown
	}
	return new(presentation)
}

// words returns the texts in the language of r. In order of preference, this is the language that
// the app requests, the language of the account, the language chosen in the browser, or the
// browser's preferred language.
func (pg *pages) words(r *http.Request) *words.Words {
	shown := presentationOf(r)
	locales := cmp.Or(shown.locales, r.URL.Query().Get("ui_locales"))
	asked := strings.Join(strings.Fields(locales), ",")
	return words.Choose(asked, shown.account, web.Language(r), r.Header.Get("Accept-Language"))
}

// view returns the theme, language and branding of the pages for r.
func (pg *pages) view(r *http.Request) templates.View {
	return templates.View{Theme: web.Theme(r), Words: pg.words(r), Back: backOf(r), Brand: pg.brand(r)}
}

// maxLocales is the maximum length of ui_locales in the URLs of forms.
const maxLocales = 200

// formAt returns the URL for a form on the page of r. The URL keeps the page's ui_locales, so that
// the response to the form has the same language.
func formAt(r *http.Request, path string) string {
	asked := r.URL.Query().Get("ui_locales")
	if asked == "" || len(asked) > maxLocales {
		return path
	}
	return path + "?ui_locales=" + url.QueryEscape(asked)
}

// backOf returns the URL of the page of r, or "" if the page cannot be requested again.
func backOf(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	if id := r.PostForm.Get("id"); id != "" {
		return r.URL.Path + "?id=" + url.QueryEscape(id)
	}
	return ""
}

// linkAt returns the URL of the page to which the link with this token leads. r requests this page
// or posts its form.
func linkAt(r *http.Request, token string) string {
	page := formAt(r, r.URL.Path)
	if strings.Contains(page, "?") {
		return page + "&token=" + url.QueryEscape(token)
	}
	return page + "?token=" + url.QueryEscape(token)
}

// ownPath returns raw if it is a path on this host. Otherwise it returns "/", so that redirects
// never lead to another site.
func ownPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return "/"
	}
	if !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || strings.ContainsAny(raw, "\\\r\n\t") {
		return "/"
	}
	return u.RequestURI()
}

// changeLanguage serves POST /language, the language menu at the bottom of pages. The chosen
// language also overrides the language that the app requested.
func (pg *pages) changeLanguage(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	back := ownPath(form.Get("back"))
	chosen := words.In(form.Get("language"))
	if chosen == nil {
		seeOther(w, back)
		return nil
	}

	pg.cookies.SetLanguage(w, r, chosen.Tag)
	u, err := url.Parse(back)
	if err != nil {
		seeOther(w, back)
		return nil
	}
	if q := u.Query(); q.Has("ui_locales") { // for example, in the link of an email
		q.Set("ui_locales", chosen.Tag)
		u.RawQuery = q.Encode()
		back = u.RequestURI()
	}
	if id := u.Query().Get("id"); id != "" {
		if err := pg.setRequestLanguage(r, id, chosen.Tag); err != nil {
			return err
		}
	}
	seeOther(w, back)
	return nil
}

// setRequestLanguage changes the language of an authorization request of this browser, if the
// request has not ended.
func (pg *pages) setRequestLanguage(r *http.Request, id, language string) error {
	req, _, err := pg.Requests.Resume(r.Context(), id, pg.cookies.FlowOfRequest(r, id))
	if err != nil {
		return nil // the page will show the error
	}
	req.UILocales = language
	return pg.Requests.Suspend(r.Context(), req)
}

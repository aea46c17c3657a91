package server

import (
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/templates"
)

// A mailbox shows the emails that are kept instead of sent. The links in them work, so only this machine
// may read them. It must use a local host name, because otherwise a page of another site could read them
// by DNS rebinding.
type mailbox struct {
	box  *mail.Box
	view func(*http.Request) templates.View
	log  *slog.Logger
}

// Handler serves:
//
//	GET /dev/mail
//	GET /dev/mail/{key}
//	GET /dev/mail/{key}/html
func (m mailbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /dev/mail", m.local(m.list))
	mux.Handle("GET /dev/mail/{key}", m.local(m.show))
	mux.Handle("GET /dev/mail/{key}/html", m.local(m.html))
	return mux
}

// local passes a request to h only if it comes from this machine, and uses a local host name. It responds
// to errors.
func (m mailbox) local(h web.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !web.IsLocal(r) {
			notFound(w, r)
			return
		}

		err := h(w, r)
		if errors.Is(err, problem.NotFound) {
			notFound(w, r)
			return
		}

		if err != nil {
			web.LogInternal(r, m.log, err)
			view := m.view(r)
			page := templates.Error{
				Title:     view.Words.Say("error.internal"),
				RequestID: web.RequestID(r.Context()),
			}
			_ = templates.Write(w, page, templates.Options{Status: http.StatusInternalServerError, View: view})
		}
	})
}

// list serves GET /dev/mail.
func (m mailbox) list(w http.ResponseWriter, r *http.Request) error {
	items, err := m.box.List(r.Context())
	if err != nil {
		return err
	}
	view := m.view(r)
	page := templates.Mailbox{Back: backOf(r)}
	for _, i := range items {
		page.Mails = append(page.Mails, templates.Mail{
			Key:     i.Key,
			To:      i.To,
			Subject: i.Subject,
			Arrived: view.Words.Ago(m.box.Now(), i.Arrived),
			At:      i.Arrived.UTC().Format(time.RFC3339),
		})
	}
	return templates.Write(w, page, templates.Options{View: view})
}

// backOf returns the path of the dashboard's page that linked to the mailbox, or "". Other paths and
// sites are ignored.
func backOf(r *http.Request) string {
	back := r.FormValue("back")
	if !strings.HasPrefix(back, dashboard.Prefix+"/") || path.Clean(back) != back {
		return ""
	}
	return back
}

// show serves GET /dev/mail/{key}.
func (m mailbox) show(w http.ResponseWriter, r *http.Request) error {
	found, err := m.box.Find(r.Context(), r.PathValue("key"))
	if err != nil {
		return err
	}

	page := templates.MailShown{
		Mail: templates.Mail{Key: r.PathValue("key"), To: found.To, Subject: found.Subject},
		From: found.From.String(),
		Text: found.Text,
		Link: found.Link,
		Back: backOf(r),
	}
	return templates.Write(w, page, templates.Options{Frames: []string{"'self'"}, View: m.view(r)})
}

// html serves GET /dev/mail/{key}/html: the email itself, for a frame in the page that show serves.
// The email cannot run scripts or load anything, and its links lead nowhere.
func (m mailbox) html(w http.ResponseWriter, r *http.Request) error {
	found, err := m.box.Find(r.Context(), r.PathValue("key"))
	if err != nil {
		return err
	}

	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; "+
		"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	shown := strings.Replace(found.HTML, `"cid:logo"`,
		`"data:image/png;base64,`+base64.StdEncoding.EncodeToString(found.Logo)+`"`, 1) // the attached logo

	_, _ = io.WriteString(w, shown) // fails only if the browser has disconnected
	return nil
}

// Package console writes log lines and other messages, in a format for people or for machines.
package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// NewLogger returns a logger with the configured format. level can be changed later.
func NewLogger(w io.Writer, format config.LogFormat, level slog.Leveler) *slog.Logger {
	if format == "json" || format == "auto" && !IsTerminal(w) {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(&lineHandler{w: w, mu: new(sync.Mutex), level: level})
}

// A lineHandler writes each record as one line for people. The line contains the time of day, the
// level unless it is info, the message and the attributes.
type lineHandler struct {
	w      io.Writer
	mu     *sync.Mutex
	level  slog.Leveler
	attrs  string // attributes from WithAttrs, already formatted
	groups string // names from WithGroup, each followed by a dot
}

// Enabled reports whether records of a level are written.
func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle writes a record.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Time.Format(time.TimeOnly))
	if r.Level != slog.LevelInfo {
		fmt.Fprintf(&b, " %s", strings.ToLower(r.Level.String()))
	}

	fmt.Fprintf(&b, " %s%s", Printable(r.Message), h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(h.format(a, h.groups))
		return true
	})

	b.WriteByte('\n')

	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b.Bytes())
	return err
}

// WithAttrs returns a handler that adds attributes to each record.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	for _, a := range attrs {
		next.attrs += h.format(a, h.groups)
	}
	return &next
}

// WithGroup returns a handler that prefixes the names of attributes with the group's name.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.groups += name + "."
	return &next
}

// format formats an attribute with a leading space. It formats the members of a group one by one,
// with the group's name as a prefix.
func (h *lineHandler) format(a slog.Attr, groups string) string {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		var b strings.Builder
		for _, member := range v.Group() {
			b.WriteString(h.format(member, groups+a.Key+"."))
		}
		return b.String()
	}
	return " " + groups + a.Key + "=" + Printable(v.String())
}

// Printable returns s unchanged, or as a quoted Go string if it is empty or contains quotes,
// backslashes or characters that could break the line or the terminal.
func Printable(s string) string {
	quoted := strconv.Quote(s)
	if s == "" || quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

package server

import (
	"context"
	"log/slog"

	"github.com/selvage/selvage/operator/dashboard"
)

// healthOf returns a function that checks the dependencies of this server for the dashboard.
func (a *App) healthOf(log *slog.Logger) func(context.Context) []dashboard.Health {
	all := &dependencies{all: a.needs(), log: slog.New(slog.DiscardHandler)} // /readyz already logs changes
	return func(context.Context) []dashboard.Health {
		answers := all.check()
		shown := make([]dashboard.Health, 0, len(all.all))
		for _, d := range all.all {
			answer := answers[d.name]
			h := dashboard.Health{Name: d.name, Note: answer.note, OK: answer.err == nil}
			if answer.err != nil {
				h.Note = "not ready"
				log.Debug("not ready", "dependency", d.name, "error", answer.err)
			}
			shown = append(shown, h)
		}
		return shown
	}
}

package doctor

import (
	"context"

	"github.com/selvage/selvage/calls/script"
)

// scripts checks that the server of the webhook for scripts responds.
func (e callChecks) scripts(ctx context.Context) []Finding {
	if why, carries := e.carriesCalls(); !carries {
		return []Finding{{Status: Skipped, Found: why}}
	}
	s := e.Config.Calls.Scripts
	if s.URL == "" {
		return []Finding{skippedf("none: calls to scripts are refused")}
	}
	hook, err := script.New(script.Config{URL: string(s.URL), Secret: s.Secret})
	if err == nil {
		err = hook.Probe(ctx)
	}
	if err != nil {
		return []Finding{brokenf("start the webhook for scripts, or correct calls.scripts.url", "%s: %s", s.URL, err)}
	}
	return []Finding{finef("%s answers", s.URL)}
}

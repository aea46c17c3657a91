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
	if err := probeScripts(ctx, script.Config{URL: string(s.URL), Secret: s.Secret}); err != nil {
		return []Finding{brokenf("%s: %s", s.URL, err).
			withRemedy("start the webhook for scripts, or correct calls.scripts.url")}
	}
	return []Finding{finef("%s answers", s.URL)}
}

// probeScripts sends a request to the webhook for scripts.
func probeScripts(ctx context.Context, c script.Config) error {
	hook, err := script.New(c)
	if err != nil {
		return err
	}
	return hook.Probe(ctx)
}

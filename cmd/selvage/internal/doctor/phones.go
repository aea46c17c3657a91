package doctor

import (
	"context"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// phones checks that the running server has the port for phones, or that UDP and TCP are free, and
// that phones elsewhere can reach it.
func (e callChecks) phones(ctx context.Context) []Finding {
	why, carries := e.carriesCalls()
	address := e.Config.ListenSIP
	switch {
	case !carries:
		return []Finding{skippedf("%s", why)}
	case address == config.Off:
		return []Finding{skippedf("off: phones cannot register")}
	case !e.alive:
		if err := tryBoth(ctx, string(address)); err != nil {
			return []Finding{unlistenable(address, "--listen-sip", err)}
		}
	case e.running.SIP == "":
		return []Finding{skippedf("%s is opened at the next start", address)}
	}

	if media := e.Config.MediaListener(); media.Loopback() && !address.Loopback() {
		return []Finding{warnedf("set --listen-media :8444, and open --phone-ports in the firewall for UDP",
			"phones reach %s, but their media is on %s, which only this machine reaches", address, media)}
	}
	if e.alive {
		return []Finding{finef("%s, used by the running server for UDP and TCP", e.running.SIP)}
	}
	return []Finding{finef("%s is free for UDP and TCP", address)}
}

package doctor

import (
	"context"

	"github.com/selvage/selvage/calls/rtpengine"
)

// rtpengine checks that each rtpengine answers and has the interfaces that calls need.
func (e callChecks) rtpengine(ctx context.Context) (all []Finding) {
	if why, carries := e.carriesCalls(); !carries {
		return []Finding{{Status: Skipped, Found: why}}
	}
	addresses := e.Config.Calls.RTPEngine
	if len(addresses) == 0 {
		return []Finding{skippedf("none: the server carries the media of calls itself")}
	}

	for _, address := range addresses {
		at, err := rtpengine.Probe(ctx, address)
		switch {
		case err != nil:
			all = append(all, brokenf("%s: %s", address, err).
				withRemedy(textf("start it with --listen-ng %s, or correct calls.rtpengine", address)))
		case !at.Internal.IsLoopback() && !at.Internal.IsPrivate():
			all = append(all, warnedf("%s exchanges media without encryption at %s", address, at.Internal).
				withRemedy("give rtpengine an --interface internal/ADDRESS that only this machine reaches"))
		default:
			all = append(all, finef("%s answers; clients send media to %s", address, at.External))
		}
	}
	return all
}

package doctor

import (
	"context"
	"net"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// phones checks that the running server listens on the port for phones. If no server is running, it
// checks that the port is free for UDP and TCP. It also checks that phones on other machines can
// reach the port.
func (e callChecks) phones(ctx context.Context) []Finding {
	return e.checkPhones(e.Config.ListenSIP, "--listen-sip", e.running.SIP, "UDP/TCP",
		func(address string) error { return tryBoth(ctx, address) })
}

// securePhones is like phones, but for the TLS port.
func (e callChecks) securePhones(ctx context.Context) []Finding {
	conf := e.Config
	if conf.ListenSIPS != config.Off && conf.TLSAddress() == config.Off && conf.ListenMTLS == config.Off {
		return []Finding{brokenf("%s needs the certificate of HTTPS, which is off", conf.ListenSIPS).
			withRemedy("set --listen-tls")}
	}
	return e.checkPhones(conf.ListenSIPS, "--listen-sips", e.running.SIPS, "TLS", func(address string) error {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return l.Close()
	})
}

// checkPhones checks one port for phones. running is the address on which the running server
// listens, or "".
func (e callChecks) checkPhones(
	address config.HostPort, flag, running, transports string, try func(address string) error,
) []Finding {
	why, carries := e.carriesCalls()
	switch {
	case !carries:
		return []Finding{{Status: Skipped, Found: why}}
	case address == config.Off:
		return []Finding{skippedf("off: phones cannot register by %s", transports)}
	case !e.alive:
		if err := try(string(address)); err != nil {
			return []Finding{unlistenable(address, flag, err)}
		}
	case running == "":
		return []Finding{skippedf("%s is opened at the next start", address)}
	}

	if media := e.Config.MediaListener(); media.Loopback() && !address.Loopback() {
		return []Finding{warnedf("phones reach %s, but their media is on %s, which only this machine reaches",
			address, media).
			withRemedy("set --listen-media :8444, and open --phone-ports in the firewall for UDP")}
	}
	if e.alive {
		return []Finding{finef("%s, used by the running server for %s", running, transports)}
	}
	return []Finding{finef("%s is free for %s", address, transports)}
}

package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// GatewayKind is the type of the resources that are SIP gateways.
const GatewayKind = "sip_gateway"

// Gateways finds SIP gateways. [Resources] creates and changes them.
type Gateways struct {
	*core
	store GatewayStore
}

// A GatewayStore reads SIP gateways; see [Stores].
type GatewayStore interface {
	// FindResource returns a resource of a project, by its type and id.
	FindResource(ctx context.Context, projectID, typ, id string) (Resource, error)
	// ListResources returns a page of a project's resources of a type.
	ListResources(ctx context.Context, projectID, typ string, q page.Query) (page.Page[Resource], error)
	// ListGateways returns SIP gateways of all projects, ordered by id. It begins with the first
	// gateway whose id is greater than after, and returns at most limit gateways.
	ListGateways(ctx context.Context, after string, limit int) ([]Resource, error)
}

// A Gateway is a SIP trunk, carrier or PBX.
type Gateway struct {
	ID, ProjectID, Name string
	User, Host          string         // user and host of the URI; User may be ""
	Port                uint16         // port of the URI, or 0
	Transport           string         // udp, tcp or tls
	Username, Password  string         // credentials at the gateway; "" without authentication
	Registers           bool           // whether the server registers at the gateway
	CallerID            string         // the number that called parties see; "" means the caller's number
	Encrypted           bool           // whether calls need encrypted media
	Codecs, Ciphers     []string       // codecs and ciphers by their names in the API
	Prefixes            []string       // prefixes of phone numbers that use the gateway
	Networks            []netip.Prefix // networks from which the gateway's calls come
	MaxCalls            int            // maximum number of calls at a time
	Updated             time.Time
	Damage              error // why the password cannot be opened; only All sets it
}

// ParseSIPHost splits the URI of a gateway, which is [sip:][user@]host[:port]. Without a port, port
// is 0.
func ParseSIPHost(uri string) (user, host string, port uint16, ok bool) {
	uri = strings.TrimPrefix(uri, "sip:")
	if i := strings.LastIndexByte(uri, '@'); i >= 0 {
		user, uri = uri[:i], uri[i+1:]
	}

	host = uri
	if h, p, err := net.SplitHostPort(uri); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", "", 0, false
		}
		host, port = h, uint16(n)
	}

	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return user, host, port, (err == nil || isHostName(host)) && isSIPUser(user)
}

// isHostName reports whether host consists of the labels of a DNS name.
func isHostName(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, letters+"-_") != "" {
			return false
		}
	}
	return true
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isSIPUser reports whether a user needs no escaping in a SIP URI (RFC 3261, section 25.1).
func isSIPUser(user string) bool { return strings.Trim(user, letters+"-_.!~*'()&=+$,;?/%") == "" }

// gatewayOf returns the gateway that a resource describes, without its password.
func gatewayOf(r Resource) Gateway {
	g := Gateway{
		ID:        r.ID,
		ProjectID: r.ProjectID,
		Name:      r.DisplayName,
		Transport: r.Fields.Text("transport"),
		Username:  r.Fields.Text("username"),
		CallerID:  r.Fields.Text("caller_id"),
		Encrypted: r.Fields.Text("encryption") == "required",
		MaxCalls:  100,
		Updated:   r.Updated,
	}
	g.User, g.Host, g.Port, _ = ParseSIPHost(r.Fields.Text("uri"))
	if g.Transport == "" {
		g.Transport = "udp"
	}

	// The schema ensures the types. Older gateways may lack a member that was introduced later.
	_ = json.Unmarshal(r.Fields["register"], &g.Registers)
	_ = json.Unmarshal(r.Fields["codecs"], &g.Codecs)
	_ = json.Unmarshal(r.Fields["prefixes"], &g.Prefixes)
	_ = json.Unmarshal(r.Fields["max_calls"], &g.MaxCalls)
	g.Networks, g.Ciphers = networksOf(r.Fields), ciphersOf(r.Fields)
	return g
}

// networksOf returns the networks in the member ip_auth. A single address becomes a network that
// contains only this address.
func networksOf(v kinds.Values) (all []netip.Prefix) {
	var texts []string
	_ = json.Unmarshal(v["ip_auth"], &texts) // the schema reports other values
	for _, text := range texts {
		if n, err := netip.ParsePrefix(text); err == nil {
			all = append(all, n.Masked())
		} else if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return all
}

// widest maps the length of an address in bits to the shortest prefix that a network in ip_auth may
// have. The size of networks is limited because calls from them need no password.
var widest = map[int]int{32: 8, 128: 16}

// checkGateway checks the rules that the schema of gateways cannot express.
func checkGateway(v kinds.Values) error {
	var errs []error
	if _, _, _, ok := ParseSIPHost(v.Text("uri")); v.Text("uri") != "" && !ok {
		errs = append(errs, problem.BadParam("uri", "uri must be user@host or user@host:port"))
	}
	if !isSIPUser(v.Text("caller_id")) {
		errs = append(errs, problem.BadParam(
			"caller_id", "caller_id must be a number such as +4930123456, or a user name"))
	}
	var registers bool
	_ = json.Unmarshal(v["register"], &registers)
	if registers && v.Text("username") == "" {
		errs = append(errs, problem.BadParam("username", "username is needed to register at the gateway"))
	}

	errs = append(errs, checkNetworks(v))
	for _, n := range networksOf(v) {
		if n.Bits() < widest[n.Addr().BitLen()] {
			errs = append(errs, problem.BadParam("ip_auth", "ip_auth must not contain networks as large as %s", n))
			break
		}
	}
	return errors.Join(errs...)
}

// checkDestination returns an error if a gateway with a password moves to another host or port, and
// the change does not include the password. Otherwise, anyone who may change the gateway could make
// the server prove the stored password to their own host.
func checkDestination(old Resource, v kinds.Values) error {
	_, host, port, _ := ParseSIPHost(old.Fields.Text("uri"))
	_, newHost, newPort, _ := ParseSIPHost(v.Text("uri"))
	if old.Secrets == "" || v["password"] != nil || strings.EqualFold(host, newHost) && port == newPort {
		return nil
	}
	return problem.BadParam("password", "password must be sent again for another host or port")
}

// ChooseTransport sets the transport in v to tls if a change makes a gateway require encryption and its
// transport was not sent. It returns an error if v has a transport that cannot be used. old is nil for a
// new gateway.
func ChooseTransport(old, v kinds.Values, sent map[string]json.RawMessage) error {
	defaultTransport(old, v, sent)
	return checkTransport(old, v)
}

// defaultTransport sets the transport as [ChooseTransport] does, but does not check it.
func defaultTransport(old, v kinds.Values, sent map[string]json.RawMessage) {
	_, given := sent["transport"]
	if !given && v.Text("encryption") == "required" && old.Text("encryption") != "required" {
		v["transport"] = quoted("tls")
	}
}

// checkTransport returns an error if a change makes a gateway send the keys of its encrypted media
// without TLS. Calls through such a gateway fail, because SDES needs protected signaling (RFC 4568,
// section 7). Other members of such a gateway can change.
func checkTransport(old, v kinds.Values) error {
	encryption, transport := v.Text("encryption"), v.Text("transport")
	isSame := encryption == old.Text("encryption") && transport == old.Text("transport")
	if isSame || encryption != "required" || transport == "tls" {
		return nil
	}
	return problem.BadParam("transport", "transport must be tls if encryption is required")
}

// open returns the gateway that a resource describes, with its password. If the password cannot be
// opened, it returns the gateway without the password, and ErrDamaged.
func (gs *Gateways) open(r Resource) (Gateway, error) {
	g := gatewayOf(r)
	if r.Secrets == "" {
		return g, nil
	}
	secrets, err := gs.openSecrets(r.ID, r.Secrets)
	if err != nil {
		return g, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	g.Password = secrets.Text("password")
	return g, nil
}

// Find returns a SIP gateway of a project. If its password cannot be opened, Find also returns ErrDamaged.
func (gs *Gateways) Find(ctx context.Context, projectID, id string) (Gateway, error) {
	id, ok := canonical(id)
	if !ok {
		return Gateway{}, problem.NoSuch("SIP gateway")
	}
	r, err := gs.store.FindResource(ctx, projectID, GatewayKind, id)
	if err != nil {
		return Gateway{}, err
	}
	return gs.open(r)
}

// gatewayPage is how many gateways are read at a time.
const gatewayPage = 500

// All returns the SIP gateways of all projects. If a gateway's password cannot be opened, All sets
// Damage in this gateway. The other gateways can still be used.
func (gs *Gateways) All(ctx context.Context) (all []Gateway, err error) {
	for after := ""; ; {
		found, err := gs.store.ListGateways(ctx, after, gatewayPage)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			g, err := gs.open(r)
			g.Damage = err
			all, after = append(all, g), r.ID
		}
		if len(found) < gatewayPage {
			return all, nil
		}
	}
}

// FindFor returns the project's gateway for calls to a phone number in E.164 format. It returns the
// gateway with the longest matching prefix. If several gateways have this prefix, it returns the
// oldest. If no prefix matches, FindFor returns problem.NotFound. If the gateway's password cannot be
// opened, FindFor also returns ErrDamaged.
func (gs *Gateways) FindFor(ctx context.Context, projectID, number string) (Gateway, error) {
	all, err := gs.of(ctx, projectID)
	if err != nil {
		return Gateway{}, err
	}

	longest, best := -1, Resource{}
	for _, r := range all {
		for _, p := range gatewayOf(r).Prefixes {
			if strings.HasPrefix(number, p) && len(p) > longest {
				longest, best = len(p), r
			}
		}
	}

	if longest < 0 {
		return Gateway{}, problem.NoSuch("SIP gateway for this number")
	}
	return gs.open(best)
}

// FindAt returns the project's gateway for a call from the given address, without the gateway's
// password. Candidates are the gateways that accept the address, and those whose ids are in
// registered. If encrypted is false, gateways that need encrypted media are left out. If several
// gateways remain, FindAt returns the gateway with the lowest id. If there is no such gateway, the
// error is problem.NotFound.
func (gs *Gateways) FindAt(
	ctx context.Context, projectID string, from netip.Addr, registered map[string]bool, encrypted bool,
) (found Gateway, err error) {
	all, err := gs.of(ctx, projectID)
	if err != nil {
		return found, err
	}

	for _, r := range all {
		g := gatewayOf(r)
		if (g.Accepts(from) || registered[g.ID]) && (encrypted || !g.Encrypted) &&
			(found.ID == "" || g.ID < found.ID) {
			found = g
		}
	}

	if found.ID == "" {
		return found, problem.NoSuch("SIP gateway at this address")
	}
	return found, nil
}

// of returns the gateways of a project.
func (gs *Gateways) of(ctx context.Context, projectID string) ([]Resource, error) {
	return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[Resource], error) {
		return gs.store.ListResources(ctx, projectID, GatewayKind, q)
	})
}

// Accepts reports whether the gateway's calls may come from an address.
func (g Gateway) Accepts(from netip.Addr) bool {
	return slices.ContainsFunc(g.Networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

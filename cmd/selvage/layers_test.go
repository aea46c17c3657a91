package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/selvage/selvage"

// layers lists the packages of this module, each with the packages that it may import. Packages
// that are not listed must not exist.
var layers = map[string][]string{
	// The root, which no package imports.
	"cmd/selvage": {"cmd/selvage/internal/cli", "cmd/selvage/internal/command", "cmd/selvage/internal/heap"},
	// Commands may import any package. Package cli handles input and output and imports no domain.
	"cmd/selvage/internal/command": {"*"},
	"cmd/selvage/internal/cli": {"cmd/selvage/internal/console", "internal/problem", "internal/span",
		"internal/suggest"},
	// The assembly of the services, for servers and commands.
	"cmd/selvage/internal/server": {"calls", "chat", "calls/media", "calls/record", "calls/rtpengine",
		"calls/script", "calls/sip", "calls/turn",
		"operator/dashboard",
		"fabric", "fabric/kinds",
		"fabric/relay", "fabric/rest", "idp", "idp/oidc", "internal/audit", "internal/blob", "internal/bus",
		"cmd/selvage/internal/backups", "internal/backup", "cmd/selvage/internal/ca",
		"cmd/selvage/internal/certs", "cmd/selvage/internal/clock",
		"cmd/selvage/internal/config", "cmd/selvage/internal/console", "internal/database",
		"cmd/selvage/internal/datadir", "cmd/selvage/internal/demo", "cmd/selvage/internal/mediastore",
		"internal/deliver", "internal/dpop",
		"cmd/selvage/internal/doctor", "internal/egress", "internal/factor", "internal/limit",
		"internal/mail", "cmd/selvage/internal/docsite", "openapi", "internal/page",
		"internal/password", "internal/problem", "internal/revocation", "internal/session",
		"internal/session/failover", "internal/session/redis", "internal/session/sql",
		"internal/span", "internal/spent", "internal/telemetry", "store", "internal/web", "internal/words", "keys",
		"operator",
		"recordings", "recordings/laml", "recordings/rest", "sdk", "static", "templates"},
	"cmd/selvage/internal/backups": {"cmd/selvage/internal/config", "cmd/selvage/internal/datadir",
		"cmd/selvage/internal/mediastore", "internal/audit", "internal/backup", "internal/blob", "internal/database",
		"internal/durable", "internal/problem", "keys", "recordings", "store"},
	"cmd/selvage/internal/mediastore": {"cmd/selvage/internal/config", "internal/blob", "keys"},
	"cmd/selvage/internal/demo": {"cmd/selvage/internal/config", "cmd/selvage/internal/datadir", "fabric",
		"idp", "internal/page", "internal/problem", "internal/uuid7", "internal/web", "internal/words", "operator",
		"recordings", "sdk", "templates"},
	// Protocols and the store import their domains and the plumbing, never each other.
	"operator/dashboard": {"calls", "fabric", "fabric/kinds", "idp", "internal/audit", "internal/cnf",
		"internal/deliver", "internal/factor", "internal/brand", "internal/mail", "internal/once", "internal/page",
		"internal/problem", "internal/session",
		"internal/web", "internal/words", "keys", "operator", "operator/names", "recordings", "recordings/levels",
		"templates"},
	"operator/names": {"calls", "fabric", "idp", "internal/audit", "internal/page", "internal/problem", "operator",
		"recordings"},
	"fabric/relay": {"calls", "chat", "fabric", "internal/cnf", "internal/problem", "internal/web"},
	"fabric/rest": {"calls", "chat", "fabric", "fabric/kinds", "idp", "internal/audit", "internal/cnf",
		"internal/deliver", "internal/dpop", "internal/factor",
		"internal/brand", "internal/page", "internal/problem", "internal/web"},
	"idp/rp": {"idp", "internal/problem"},
	"idp/oidc": {"fabric", "idp", "idp/rp", "internal/agent", "internal/audit", "internal/cnf", "internal/deliver",
		"internal/dpop",
		"internal/factor", "internal/limit", "internal/brand", "internal/mail", "internal/once", "internal/problem",
		"internal/session", "internal/web", "internal/words", "keys", "templates"},
	"recordings/laml": {"calls", "internal/deliver", "internal/dpop", "internal/page", "internal/problem",
		"internal/web", "recordings", "recordings/levels"},
	"recordings/naming": {"internal/problem", "recordings"},
	"recordings/rest": {"internal/deliver", "internal/dpop", "internal/page", "internal/problem", "internal/web",
		"recordings", "recordings/levels"},
	"store": {"calls", "chat", "fabric", "idp", "internal/audit", "internal/database", "internal/deliver",
		"internal/durable",
		"internal/factor", "internal/brand", "internal/mail", "internal/page", "internal/problem",
		"internal/revocation", "internal/uuid7", "keys", "operator", "recordings", "recordings/levels"},
	// Domains: nouns and rules.
	"idp": {"fabric", "internal/background", "internal/audit", "internal/cnf", "internal/factor", "internal/limit",
		"internal/brand", "internal/mail", "internal/page", "internal/password", "internal/problem",
		"internal/cache", "internal/compact", "internal/revocation", "internal/session", "internal/spent", "keys"},
	"calls": {"fabric", "internal/audit", "internal/page", "internal/problem", "internal/session"},
	"chat":  {"fabric", "internal/page", "internal/problem", "internal/uuid7"},
	"fabric": {"fabric/kinds", "internal/background", "internal/audit", "internal/deliver", "internal/factor",
		"internal/brand", "internal/mail", "internal/page", "internal/password", "internal/problem", "internal/cache",
		"internal/compact", "internal/revocation", "internal/session", "internal/uuid7", "keys"},
	"operator": {"fabric", "internal/audit", "internal/limit", "internal/page", "internal/password",
		"internal/problem", "internal/session"},
	"recordings": {"internal/deliver", "internal/page", "internal/problem", "internal/cache", "internal/uuid7",
		"recordings/audio", "recordings/levels", "recordings/mp3", "recordings/wav"},
	"calls/sdp":       {"internal/problem"},
	"calls/line":      {},
	"calls/media":     {"calls", "calls/line", "calls/sdp", "internal/limit", "internal/problem", "recordings/wav"},
	"calls/rtpengine": {"calls", "calls/sdp", "internal/problem"},
	"calls/script": {"calls", "fabric/kinds", "internal/deliver", "internal/egress", "recordings/audio",
		"recordings/mp3", "recordings/wav"},
	"calls/turn": {"internal/limit"},
	"calls/sip":  {"calls", "calls/sdp", "fabric", "internal/limit", "internal/problem", "internal/session"},
	// Plumbing.
	"cmd/selvage/internal/config": {"fabric", "idp", "internal/backup", "internal/database",
		"cmd/selvage/internal/datadir",
		"internal/mail", "internal/password", "internal/problem", "internal/session/redis", "internal/span",
		"internal/suggest", "keys", "operator"},
	"cmd/selvage/internal/doctor": {"calls/media", "calls/rtpengine", "calls/script", "calls/turn", "fabric/kinds",
		"internal/backup",
		"cmd/selvage/internal/ca", "cmd/selvage/internal/certs", "cmd/selvage/internal/clock",
		"cmd/selvage/internal/config", "internal/database", "cmd/selvage/internal/datadir",
		"cmd/selvage/internal/mediastore", "internal/deliver", "internal/page",
		"internal/problem", "internal/session/redis", "internal/session/sql", "store",
		"cmd/selvage/internal/truststore", "internal/words", "keys"},
	"cmd/selvage/internal/console": {"cmd/selvage/internal/config"},
	"cmd/selvage/internal/declared": {"fabric", "fabric/kinds", "idp", "internal/brand", "internal/page",
		"internal/problem"},
	"cmd/selvage/internal/transfer": {"fabric", "fabric/kinds", "idp", "internal/page", "internal/password",
		"internal/problem", "keys", "recordings"},
	"internal/factor":              {"internal/problem", "internal/session"},
	"internal/factor/factortest":   nil,
	"internal/deliver/delivertest": nil,
	"fabric/fabrictest":            nil,
	"calls/callstest":              nil,
	"cmd/selvage/internal/docsite": {"docs", "openapi", "internal/problem", "internal/web", "sdk",
		"templates"},
	"docs":                nil,
	"openapi":             {"fabric/kinds"},
	"openapi/openapitest": {"openapi"},
	"internal/web": {"internal/audit", "internal/cnf", "internal/page", "internal/problem",
		"internal/session"},
	"internal/session/sql":         {"internal/database", "internal/problem", "internal/session"},
	"internal/session/redis":       {"internal/problem", "internal/session"},
	"internal/session/failover":    {"internal/problem", "internal/session"},
	"internal/session/sessiontest": {"internal/problem", "internal/session"},
	"store/storetest":              {"fabric", "internal/audit", "internal/blob", "store", "keys", "test/servers"},
	"internal/blob":                {"internal/problem"},
	"internal/backup":              {"internal/database"},
	"internal/argon2":              nil,
	"internal/password":            {"internal/argon2", "internal/problem"},
	"internal/revocation":          {"internal/problem"},
	"internal/database":            {"internal/problem"},
	"keys":                         {"internal/durable", "internal/problem"},
	"keys/keystest":                nil,
	"internal/dbclock":             nil,
	"internal/deliver":             {"internal/dbclock", "internal/egress", "internal/problem"},
	"internal/mail":                {"internal/agent", "internal/dbclock", "internal/problem", "internal/session"},
	"internal/egress":              {"internal/problem"},
	"templates":                    {"internal/brand", "internal/factor", "internal/words", "static"},
	"fabric/kinds":                 {"internal/problem"},
	"internal/agent":               nil,
	"internal/background":          nil,
	"internal/audit":               nil,
	"internal/bus":                 {"internal/problem"},
	"cmd/selvage/internal/ca":      {"internal/durable"},
	"cmd/selvage/internal/clock":   nil,
	"cmd/selvage/internal/datadir": nil,
	"internal/span":                nil,
	"internal/suggest":             nil,
	"internal/words":               nil,
	"internal/brand":               {"internal/problem"},
	"cmd/selvage/internal/certs":   {"internal/problem"},
	"internal/cnf":                 nil,
	"internal/uuid7":               nil,
	"internal/dpop": {"internal/cnf", "internal/problem", "internal/session", "internal/spent",
		"internal/web"},
	"internal/spent":                  {"internal/durable", "internal/problem"},
	"internal/durable":                nil,
	"internal/fuzzcost":               nil,
	"internal/limit":                  {"internal/problem", "internal/session"},
	"internal/once":                   {"internal/problem", "internal/session", "internal/web"},
	"cmd/selvage/internal/heap":       nil,
	"internal/page":                   nil,
	"internal/problem":                nil,
	"internal/cache":                  nil,
	"internal/compact":                nil,
	"internal/session":                nil,
	"internal/telemetry":              {"internal/database", "internal/problem", "internal/session", "internal/web"},
	"cmd/selvage/internal/top":        nil,
	"cmd/selvage/internal/truststore": nil,
	"calls/record": {"calls", "fabric", "internal/background", "internal/page", "internal/problem",
		"recordings", "recordings/wav"},
	"recordings/audio":       {"recordings/mp3", "recordings/opus", "recordings/wav"},
	"recordings/levels":      nil,
	"recordings/mp3":         nil,
	"recordings/mp3/mp3test": nil,
	"recordings/opus":        nil,
	"recordings/wav":         nil,
	"sdk":                    {"internal/web"},
	"sdk/build":              {"sdk"},
	"static":                 nil,
	// Tests that use the built binary from outside.
	"bench":           {"recordings/wav", "test/harness", "test/phone", "test/servers"},
	"bench/mp3":       {"recordings/mp3"},
	"bench/passwords": {"test/harness"},
	"test/attack":     {"test/harness", "test/inbox", "test/phone"},
	"test/acme":       {"test/harness"},
	"test/clients": {"internal/factor/factortest", "test/acme", "test/firefox", "test/harness", "test/inbox",
		"test/network", "test/phone"},
	"test/canaries":    {"test/harness"},
	"test/conformance": {"test/harness"},
	"test/contract":    {"test/harness", "test/phone"},
	"test/faults":      {"test/harness", "test/inbox", "test/phone"},
	"test/cluster":     {"test/harness", "test/history", "test/servers"},
	"test/history":     {"test/harness"},
	"test/cluster/run": {"test/cluster", "test/harness"},
	"test/outages":     {"test/harness"},
	"test/media":       {"test/harness"},
	"test/nodes":       {"test/acme", "test/harness", "test/history", "test/phone"},
	"test/firefox":     {"test/harness"},
	"test/network":     {"test/harness"},
	"test/phone":       {"calls/line", "test/harness"},
	"test/harness":     {"openapi/openapitest", "test/servers"},
	// Services for tests.
	"test/inbox":       nil,
	"test/servers":     nil,
	"test/servers/run": {"test/servers"},
	// Checks of the sources.
	"test/style": nil,
	"test/all":   nil,
	"test/fuzz":  nil,
}

// importers maps packages of other modules and of the standard library to the packages of this module
// that may import them. Each entry includes the packages below its own.
var importers = map[string][]string{
	"github.com/zitadel/oidc":             {"idp/oidc"},
	"github.com/coder/websocket":          {"fabric/relay", "test/firefox", "test/harness", "test/phone"},
	"github.com/gorilla/sessions":         {"internal/web"},
	"github.com/redis/go-redis":           {"internal/session/redis"},
	"github.com/rs/cors":                  {"internal/web"},
	"github.com/pressly/goose":            {"store"},
	"modernc.org/sqlite":                  {"internal/database"},
	"github.com/jackc/pgx":                {"internal/database", "test/servers"},
	"github.com/go-webauthn/webauthn":     {"internal/factor"},
	"golang.org/x/image":                  {"internal/brand"},
	"github.com/pquerna/otp":              {"internal/factor"},
	"golang.org/x/crypto/acme":            {"cmd/selvage/internal/certs"},
	"github.com/getkin/kin-openapi":       {"openapi/openapitest"},
	"github.com/yuin/goldmark":            {"cmd/selvage/internal/docsite"},
	"github.com/evanw/esbuild":            {"sdk/build"},
	"github.com/nicksnyder/go-i18n":       {"internal/words"},
	"github.com/spf13/cobra":              {"cmd/selvage/internal/cli", "cmd/selvage/internal/command"},
	"github.com/prometheus/client_golang": {"cmd/selvage/internal/server"},
	"github.com/prometheus/common":        {"cmd/selvage/internal/top"},
	"github.com/emiago/sipgo":             {"calls/sip"},
	"github.com/pion/opus":                {"calls/media", "calls/record", "recordings/opus"},
	"github.com/minio/minio-go/v7":        {"internal/blob"},
	"github.com/minio/sio":                {"internal/blob"},
	"filippo.io/age": {"internal/backup", "cmd/selvage/internal/backups",
		"cmd/selvage/internal/command"},
	"github.com/wneessen/go-mail": {"internal/mail"},
	"github.com/emersion/go-smtp": {"test/inbox"},
	"github.com/pion": {"calls/line", "calls/media", "calls/record", "calls/turn", "recordings/opus",
		"test/phone"},
	"go.opentelemetry.io/otel": {"internal/telemetry"},
	"database/sql":             {"internal/database", "internal/session/sql", "internal/telemetry", "store"},
	"net/http": {"bench", "calls/script", "operator/dashboard", "fabric/relay", "fabric/rest",
		"idp/oidc", "idp/rp", "cmd/selvage/internal/docsite",
		"cmd/selvage/internal/certs", "cmd/selvage/internal/demo", "internal/deliver",
		"cmd/selvage/internal/doctor", "internal/dpop", "internal/egress",
		"internal/once",
		"openapi/openapitest", "cmd/selvage/internal/server", "cmd/selvage/internal/top", "internal/telemetry",
		"internal/web", "recordings/laml", "recordings/rest", "sdk", "static", "templates", "test/acme",
		"test/harness", "test/phone"},
}

// A listedPackage is the output of `go list` for a package.
type listedPackage struct {
	ImportPath string
	Imports    []string
}

// TestLayers checks that packages import only what layers and importers permit.
func TestLayers(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name == "" {
			continue // the root directory
		}

		allowed, known := layers[name]
		if !known {
			t.Errorf("%s has no layer: give it one here and in docs/architecture.md", name)
			continue
		}

		for _, imported := range p.Imports {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && !slices.Contains(allowed, ours) && !slices.Contains(allowed, "*") {
				t.Errorf("%s imports %s, which its layer does not allow", name, ours)
			}
			for theirs, users := range importers {
				if within(imported, theirs) && !slices.Contains(users, name) {
					t.Errorf("%s imports %s, which only these may import: %s",
						name, imported, strings.Join(users, ", "))
				}
			}
		}
	}
}

// within reports whether an imported package is at path or below it.
func within(imported, path string) bool {
	return imported == path || strings.HasPrefix(imported, path+"/")
}

// listPackages returns the module's packages with their imports. It omits the imports of tests.
func listPackages(t *testing.T) (all []listedPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listedPackage
		err := dec.Decode(&p)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		all = append(all, p)
	}
}

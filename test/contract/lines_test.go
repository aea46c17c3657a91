package contract

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

var (
	areaLink = regexp.MustCompile(`href="(/docs/[a-z0-9-]+)"`)
	shown    = regexp.MustCompile(`(?s)<section class="operation" id="([^"]+)".*?` +
		`<figcaption>Request</figcaption><pre[^>]*><code>(.*?)</code>`)
)

// lines returns the shell commands that the pages of /docs show, by operation.
func (w *world) lines(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, link := range areaLink.FindAllStringSubmatch(string(w.Get(t, "/docs").Want(t, 200).Body), -1) {
		for _, m := range shown.FindAllStringSubmatch(string(w.Get(t, link[1]).Want(t, 200).Body), -1) {
			all[m[1]] = html.UnescapeString(m[2])
		}
	}
	return all
}

// TestLines shows that the command of every operation works when it is pasted into a shell in which
// the variables that it uses are set.
func TestLines(t *testing.T) {
	harness.Need(t, "curl", "sh")
	w := newWorld(t)
	env := w.shell(t)
	subscriber, _ := w.login(t, "openid Voice")
	lines, app := w.lines(t), w.NewClient(t, "spa")
	device := w.NewClient(t, "native", "--grant", "device_code")
	web := w.NewClient(t, "web")

	for _, op := range w.operations("Fabric", "Kinds of resources", "Management", "Recordings", "Identity") {
		t.Run(op.OperationID, func(t *testing.T) {
			env := slices.Clone(env)
			line := lines[op.OperationID]
			if line == "" {
				t.Fatal("the pages show no command for this operation")
			}

			path := op.path
			switch w.tag[op.Tags[0]] {
			case "Recordings":
				path = w.recording(t, op, subscriber)
			case "Identity":
				switch {
				case op.OperationID == "authorizeDevice":
					env = append(env, "CLIENT_ID="+device.ID)
				case op.Tags[0] == "Client registration":
					secret := w.initialSecret(t)
					made := w.Post(t, "/oauth/register", harness.Bearer(secret), harness.JSON(
						map[string]any{"redirect_uris": []string{harness.RedirectURI}})).Want(t, 201).Object(t)
					id := made["client_id"].(string)
					path = strings.ReplaceAll(path, "{client_id}", id)
					env = append(env, "INITIAL_TOKEN="+secret, "CLIENT_ID="+id,
						"REGISTRATION_TOKEN="+made["registration_access_token"].(string))
				case op.OperationID == "pushAuthorizationRequest":
					env = append(env, "CLIENT_ID="+web.ID, "CLIENT_SECRET="+web.Secret)
				case op.Tags[0] == "Login":
					env = append(env, "CLIENT_ID="+app.ID)
				}
			default:
				path = w.subject(t, op)
			}
			if op.Tags[0] == "Messages" { // subscribers cannot write to themselves
				env = append(env, "ADDRESS_ID="+w.Address(t, w.NewSAT(t, "grace").SubscriberID))
			}

			status := paste(t, line, append(env, pathVariables(line, op.path, path)...))
			if w.tag[op.Tags[0]] == "Kinds of resources" && strings.HasSuffix(op.path, "{id}") {
				w.Do(t, "DELETE", path, w.who["basic"]) // the next example uses the same name
			}
			if status < 200 || status > 399 || op.Responses.Status(status) == nil {
				t.Errorf("status %d, want a documented one below 400. The command was\n%s", status, line)
			}
		})
	}
}

// shell returns the environment variables that the commands on the pages use.
func (w *world) shell(t *testing.T) []string {
	t.Helper()
	sat := w.NewSAT(t, "ada")
	service := w.NewClient(t, "service", "--scope", "Voice")
	_, login := w.login(t, "openid")
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	login(r)

	env := []string{
		"PATH=" + os.Getenv("PATH"), "PROJECT_ID=" + w.ID, "API_KEY=" + w.NewKey(t, everyScope...),
		"SAT=" + sat.Token,
		"CLIENT_ID=" + service.ID, "CLIENT_SECRET=" + service.Secret,
		"ACCESS_TOKEN=" + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		"REDIRECT_URI=" + harness.RedirectURI,
	}

	for name, example := range map[string]string{
		"ADDRESS_ID":      "0f6d2f34-1c55-4f0b-bb0e-5a1c6a3d7e12",
		"RESOURCE_ID":     "5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13",
		"SIP_ADDRESS_ID":  "9a4e6d1b-2c3f-4a5e-8b7d-6c5e4f3a2b14",
		"SIP_ENDPOINT_ID": "d4f0c3b2-a1e9-4d8c-b7f6-5a4e3d2c1b17",
		"REFRESH_TOKEN":   "eyJhbGciOiJkaXIi…",
		"EMBED_KEY":       "c2c_7acc0e5e968706a032983cd80cdca219",
	} {
		env = append(env, name+"="+w.values[example](t))
	}
	return env
}

var inLine = regexp.MustCompile(`https?://[^/\s"]+(/[^\s"?]*)`)

// pathVariables returns the variables in a command's path. It takes their values from the path of
// an existing object.
func pathVariables(line, pattern, path string) (env []string) {
	m := inLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	names, patterns, values := strings.Split(m[1], "/"), strings.Split(pattern, "/"), strings.Split(path, "/")
	for i := range patterns {
		if i < len(names) && i < len(values) && strings.HasPrefix(names[i], "$") {
			_, ext, _ := strings.Cut(patterns[i], "}")
			env = append(env, strings.TrimSuffix(strings.TrimPrefix(names[i], "$"), ext)+"="+
				strings.TrimSuffix(values[i], ext))
		}
	}
	return env
}

// paste runs a command in a directory that contains a recording, and returns the HTTP status.
func paste(t *testing.T, line string, env []string) int {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "recording.wav"),
		harness.Tone(8000, 30+int(serial.Add(1))), 0o600); err != nil {
		t.Fatal(err)
	}

	// Webhooks must not be delivered to other machines.
	line = strings.ReplaceAll(line, "example.com/hooks", "hooks.invalid/fabric")
	line = strings.Replace(line, "curl -sS", "curl -sS -w '\\n%{http_code}'", 1)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()

	text := strings.TrimSpace(string(out))
	status, numErr := strconv.Atoi(text[strings.LastIndexByte(text, '\n')+1:])
	if err != nil || numErr != nil {
		t.Fatalf("%s\n%v: %s", line, err, out)
	}

	if status >= 400 {
		t.Logf("%.600s", text)
	}
	return status
}

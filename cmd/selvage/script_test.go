package main

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// patient is the maximum time that scripts wait for an event.
const patient = time.Minute

// clientKey is the key under which a script keeps its HTTP client.
type clientKey struct{}

// newScriptClient returns a client that keeps cookies like a browser and does not follow redirects.
// It trusts every certificate, because package ca tests certificates.
func newScriptClient() *http.Client {
	jar, _ := cookiejar.New(nil) // cannot fail without options
	return &http.Client{
		Jar:           jar,
		Timeout:       patient,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
}

// A scriptRequest is a request described by the arguments of http.
type scriptRequest struct {
	basic  string // name:password
	bearer string // bearer token
	json   string // JSON body
	form   string // form body
	file   string // WAV file to send
	head   string // header
	out    string // file to write the body to
	match  string // pattern to wait for in the body

	method, url string
	status      int
}

// parseRequest parses the arguments of http: flags, method, URL and the expected status.
func parseRequest(args []string) (r scriptRequest, err error) {
	f := flag.NewFlagSet("http", flag.ContinueOnError)
	f.StringVar(&r.basic, "u", "", "")
	f.StringVar(&r.bearer, "b", "", "")
	f.StringVar(&r.json, "j", "", "")
	f.StringVar(&r.form, "d", "", "")
	f.StringVar(&r.file, "w", "", "")
	f.StringVar(&r.head, "H", "", "")
	f.StringVar(&r.out, "o", "", "")
	f.StringVar(&r.match, "m", "", "")

	if err := f.Parse(args); err != nil {
		return r, err
	}
	if f.NArg() != 3 {
		return r, fmt.Errorf("usage: http [flags] METHOD URL STATUS")
	}

	r.method, r.url = f.Arg(0), f.Arg(1)
	r.status, err = strconv.Atoi(f.Arg(2))
	if err != nil {
		return r, err
	}
	return r, nil
}

// make builds the HTTP request.
func (r scriptRequest) make(ts *testscript.TestScript) (*http.Request, error) {
	var body io.Reader
	contentType := ""
	switch {
	case r.json != "":
		body = strings.NewReader(r.json)
		contentType = "application/json"
	case r.form != "":
		body = strings.NewReader(r.form)
		contentType = "application/x-www-form-urlencoded"
	case r.file != "":
		body = strings.NewReader(ts.ReadFile(r.file))
		contentType = "audio/wav"
	}

	req, err := http.NewRequest(r.method, r.url, body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if name, secret, ok := strings.Cut(r.basic, ":"); ok {
		req.SetBasicAuth(name, secret)
	}
	if r.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+r.bearer)
	}

	if name, value, ok := strings.Cut(r.head, ": "); ok {
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}

	return req, nil
}

// do sends the request and returns the response with its whole body.
func (r scriptRequest) do(ts *testscript.TestScript) (*http.Response, []byte, error) {
	req, err := r.make(ts)
	if err != nil {
		return nil, nil, err
	}
	resp, err := ts.Value(clientKey{}).(*http.Client).Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	return resp, body, nil
}

// cmdHTTP sends a request and shows the response. It fails unless the response has the expected
// status.
func cmdHTTP(ts *testscript.TestScript, _ bool, args []string) {
	r, err := parseRequest(args)
	ts.Check(err)
	resp, body, err := r.do(ts)
	ts.Check(err)
	r.show(ts, resp, body)
	if resp.StatusCode != r.status {
		ts.Fatalf("%s %s returned %s, want %d\n%s", r.method, r.url, resp.Status, r.status, body)
	}
}

// show writes the head of a response to stderr. It writes the body to stdout or to a file.
func (r scriptRequest) show(ts *testscript.TestScript, resp *http.Response, body []byte) {
	fmt.Fprintln(ts.Stderr(), resp.Status)
	if resp.Close { // net/http removes the field
		resp.Header.Set("Connection", "close")
	}
	ts.Check(resp.Header.Write(ts.Stderr()))
	if r.out != "" {
		ts.Check(os.WriteFile(ts.MkAbs(r.out), body, 0o644))
		return
	}
	_, err := ts.Stdout().Write(body)
	ts.Check(err)
}

// cmdUntil repeats a request until its status and body match, for at most patient.
func cmdUntil(ts *testscript.TestScript, _ bool, args []string) {
	r, err := parseRequest(args)
	ts.Check(err)
	match, err := regexp.Compile("(?m)" + r.match)
	ts.Check(err)
	var got string
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		resp, body, err := r.do(ts)
		if err != nil {
			got = err.Error()
			continue
		}
		if resp.StatusCode == r.status && match.Match(body) {
			r.show(ts, resp, body)
			return
		}
		got = resp.Status + " " + string(body)
	}

	ts.Fatalf("%s %s still returns %s, want %d %s", r.method, r.url, got, r.status, r.match)
}

// cmdAwait waits until a file matches: FILE REGEXP.
func cmdAwait(ts *testscript.TestScript, _ bool, args []string) {
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	var text string
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text = ts.ReadFile(args[0])
		if re.MatchString(text) {
			return
		}
	}
	ts.Fatalf("the pattern %s does not match the file %s:\n%s", args[1], args[0], text)
}

// cmdReady waits for a server other than the one that the previous command ready found.
func cmdReady(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var r datadir.Running
		text, err := os.ReadFile(filepath.Join(dir, datadir.RunFile))
		if err != nil || json.Unmarshal(text, &r) != nil || strconv.Itoa(r.PID) == ts.Getenv("PID") {
			continue
		}

		ts.Setenv("PID", strconv.Itoa(r.PID))
		ts.Setenv("HTTP", r.HTTP)
		ts.Setenv("HTTPS", r.HTTPS)
		ts.Setenv("OPS", r.Ops)
		ts.Setenv("BASE", r.PublicURL)
		return
	}
	ts.Fatalf("no new server is running in %s", dir)
}

// cmdSigterm asks the server that the last ready found to stop.
func cmdSigterm(ts *testscript.TestScript, _ bool, _ []string) { tell(ts, syscall.SIGTERM) }

// cmdSighup asks the same server to reload its configuration.
func cmdSighup(ts *testscript.TestScript, _ bool, _ []string) { tell(ts, syscall.SIGHUP) }

// tell sends a signal to the server that the last ready found.
func tell(ts *testscript.TestScript, sig syscall.Signal) {
	pid, err := strconv.Atoi(ts.Getenv("PID"))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, sig))
}

// cmdLet sets the variable NAME to the text that the first group of REGEXP matches in stdout or, if
// stdout does not match, in stderr.
func cmdLet(ts *testscript.TestScript, _ bool, args []string) {
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	text := ts.ReadFile("stdout") + "\n" + ts.ReadFile("stderr")
	found := re.FindStringSubmatch(text)
	if found == nil {
		ts.Fatalf("the pattern %s does not match\n%s", args[1], text)
	}
	ts.Setenv(args[0], strings.ReplaceAll(found[1], "&amp;", "&"))
}

// cmdPKCE sets VERIFIER and CHALLENGE for PKCE.
func cmdPKCE(ts *testscript.TestScript, _ bool, _ []string) {
	verifier := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	ts.Setenv("VERIFIER", verifier)
	ts.Setenv("CHALLENGE", base64.RawURLEncoding.EncodeToString(sum[:]))
}

// cmdDrain sends half of a WAV file, asks the server to stop and waits until /readyz fails. Then it sends
// the other half, and the server must store the file. With a fourth argument (force), it sends a second
// signal instead of the other half, which ends the server.
func cmdDrain(ts *testscript.TestScript, _ bool, args []string) {
	basic, target, wav := args[0], args[1], ts.ReadFile(args[2])
	u, err := url.Parse(target)
	ts.Check(err)
	conn, err := net.Dial("tcp", u.Host)
	ts.Check(err)
	defer conn.Close()

	ts.Check(conn.SetDeadline(time.Now().Add(patient)))
	const head = "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\nContent-Type: audio/wav\r\n" +
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n"
	credentials := base64.StdEncoding.EncodeToString([]byte(basic))
	_, err = fmt.Fprintf(conn, head, u.Path, credentials, len(wav))
	ts.Check(err)
	half := len(wav) / 2

	responses := bufio.NewReader(conn)
	// Wait for 100 Continue. When the server closes its listener, it also closes connections from
	// which it has not read anything yet.
	begun, err := http.ReadResponse(responses, nil)
	ts.Check(err)
	if begun.StatusCode != http.StatusContinue {
		ts.Fatalf("the upload returned %s, want 100", begun.Status)
	}

	_, err = io.WriteString(conn, wav[:half])
	ts.Check(err)
	cmdUntil(ts, false, []string{"GET", ts.Getenv("OPS") + "/readyz", "200"})
	cmdSigterm(ts, false, nil)
	cmdUntil(ts, false, []string{"GET", ts.Getenv("OPS") + "/readyz", "503"})
	if len(args) > 3 { // the second signal ends the server immediately
		cmdSigterm(ts, false, nil)
		_, err := io.ReadAll(responses)
		ts.Logf("the connection ended: %v", err)
		return
	}

	_, err = io.WriteString(conn, wav[half:])
	ts.Check(err)
	resp, err := http.ReadResponse(responses, nil)
	ts.Check(err)
	if resp.StatusCode != http.StatusCreated {
		ts.Fatalf("the upload returned %s, want 201", resp.Status)
	}
}

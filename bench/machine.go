package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/selvage/selvage/test/harness"
)

// A work counts the expensive steps that an operation needs in any implementation.
type work struct {
	signatures, verifications, hashes float64
}

// A machine holds the cost of the steps in [work] on a machine, in milliseconds of CPU time.
type machine struct {
	// A net/http request that gets the response "hello".
	Floor        float64 `json:"floor_ms"`
	Signature    float64 `json:"signature_ms,omitempty"`    // ES256
	Verification float64 `json:"verification_ms,omitempty"` // ES256
	Hash         float64 `json:"hash_ms,omitempty"`         // argon2id, 19 MiB, two passes
}

// reference is the machine on which the goals were set.
var reference = machine{Floor: 0.012, Signature: 0.022, Verification: 0.047, Hash: 17.7}

// of returns the cost of n on the machine.
func (m machine) of(n work) float64 {
	return n.signatures*m.Signature + n.verifications*m.Verification + n.hashes*m.Hash
}

// there converts a time measured on m to the time expected on the reference machine. It replaces
// the cost of the expensive steps by their cost on the reference machine, and scales the rest by
// the ratio of the two machines' floors.
func (m machine) there(ms float64, n work) float64 {
	return reference.of(n) + (ms-m.of(n))/m.Floor*reference.Floor
}

// These are the paths of the bare server. It does expensive work for each path except pathHello.
const (
	pathHello  = "/"
	pathSign   = "/sign"
	pathVerify = "/verify"
	pathHash   = "/hash"
)

// bareHandler returns a handler that does the work of the requested path, and responds with
// "hello".
func bareHandler() http.Handler {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // nothing can be measured without randomness
	}
	digest := sha256.Sum256([]byte("hello"))
	// If signing fails, /verify fails too, which ends the run.
	signature, _ := ecdsa.SignASN1(rand.Reader, key, digest[:])

	doing := func(do func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if do() {
				_, _ = io.WriteString(w, "hello\n") // fails only if the load has ended
			}
		}
	}

	mux := http.NewServeMux()
	mux.Handle(pathHello, doing(func() bool { return true }))
	mux.Handle(pathSign, doing(func() bool {
		s, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
		return err == nil && len(s) > 0
	}))
	mux.Handle(pathVerify, doing(func() bool { return ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) }))
	mux.Handle(pathHash, doing(func() bool {
		return len(argon2.IDKey([]byte("hello"), digest[:16], 2, 19<<10, 1, 32)) == 32
	}))
	return mux
}

// addMachine measures the floor alone, and the floor with each of the expensive steps.
func (r *report) addMachine(p *harness.Program, s settings) {
	m := reference
	for _, row := range []struct {
		operation
		there float64
	}{
		{r.bare.operation(floorName, pathHello, 8), m.Floor},
		{r.bare.operation("the same with an ES256 signature", pathSign, 8), m.Floor + m.Signature},
		{r.bare.operation("the same with an ES256 verification", pathVerify, 8), m.Floor + m.Verification},
		{r.bare.operation("the same with argon2id", pathHash, 1), m.Floor + m.Hash},
	} {
		r.add(p, s, row.operation, r.bare.cmd.Process.Pid)
		r.Figures[len(r.Figures)-1].There = row.there
	}
}

// measureMachine measures how fast the machine currently is, because other processes use it as
// well. It measures the floor, and the steps that n contains.
func (s bareServer) measureMachine(p *harness.Program, length time.Duration, n work) (m machine) {
	costs := func(path string, connections int) float64 {
		return measure(p, s.operation(path, path, connections), s.cmd.Process.Pid,
			max(length/6, 300*time.Millisecond), nil).cpu
	}

	m.Floor = costs(pathHello, 8)
	if n.signatures > 0 {
		m.Signature = costs(pathSign, 8) - m.Floor
	}
	if n.verifications > 0 {
		m.Verification = costs(pathVerify, 8) - m.Floor
	}
	if n.hashes > 0 {
		m.Hash = costs(pathHash, 1) - m.Floor
	}
	return m
}

// medianMachine returns the median of each figure.
func medianMachine(all []machine) machine {
	pick := func(value func(machine) float64) float64 { return middle(all, value) }
	return machine{
		Floor:        pick(func(m machine) float64 { return m.Floor }),
		Signature:    pick(func(m machine) float64 { return m.Signature }),
		Verification: pick(func(m machine) float64 { return m.Verification }),
		Hash:         pick(func(m machine) float64 { return m.Hash }),
	}
}

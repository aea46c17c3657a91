package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"time"
)

// A wire is an HTTP/1.1 connection that needs little CPU time. It sends prepared bytes and reads
// only the necessary parts of the responses.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	head []byte
	body bytes.Buffer
}

// answerDeadline limits how long a request may take.
const answerDeadline = 30 * time.Second

func dial(address string) (*wire, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// An answer is a response. It is valid until the next request on its wire.
type answer struct {
	status int
	head   []byte
	body   []byte // the first maxKept bytes
	length int64
}

// maxKept limits how many bytes of a body are kept. Copying more could take more CPU time in the
// load generator than in the server.
const maxKept = 64 << 10

// do sends a request and reads the response.
func (w *wire) do(request []byte) (answer, error) {
	if _, err := w.conn.Write(request); err != nil {
		return answer{}, err
	}

	status, err := w.readHead()
	if err != nil {
		return answer{}, err
	}

	a := answer{status: status, head: w.head}
	w.body.Reset()
	switch length := a.header("Content-Length"); {
	case bytes.HasPrefix(request, []byte("HEAD ")) || status == 204 || status == 304:
	case length != "":
		if a.length, err = strconv.ParseInt(length, 10, 64); err != nil {
			return a, err
		}
		if err := w.readBody(a.length); err != nil {
			return a, err
		}
	case a.header("Transfer-Encoding") == "chunked":
		if _, err := w.body.ReadFrom(httputil.NewChunkedReader(w.in)); err != nil {
			return a, err
		}
		if _, err := w.in.Discard(2); err != nil {
			return a, err
		}
	default:
		return a, fmt.Errorf("the answer has no length: %q", w.head)
	}

	a.body = w.body.Bytes()
	return a, nil
}

func (w *wire) readBody(length int64) error {
	kept := min(length, maxKept)
	if _, err := io.CopyN(&w.body, w.in, kept); err != nil {
		return err
	}
	_, err := w.in.Discard(int(length - kept))
	return err
}

// readHead reads the status line and the header.
func (w *wire) readHead() (status int, err error) {
	if err := w.conn.SetReadDeadline(time.Now().Add(answerDeadline)); err != nil {
		return 0, err
	}

	w.head = w.head[:0]
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		w.head = append(w.head, line...)
		if len(line) <= 2 {
			break
		}
	}

	if len(w.head) < 12 {
		return 0, fmt.Errorf("the answer begins with %q", w.head)
	}
	return strconv.Atoi(string(w.head[9:12]))
}

// header returns the value of a header field. name must have the case that Go's servers use.
func (a answer) header(name string) string {
	_, after, found := bytes.Cut(a.head, []byte("\r\n"+name+": "))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(after, []byte("\r\n"))
	return string(value)
}

// want returns an error unless the response has the given status and its body contains all parts.
func (a answer) want(status int, parts ...string) error {
	if a.status != status {
		return fmt.Errorf("the answer is %d %.300s, want %d", a.status, a.body, status)
	}
	for _, p := range parts {
		if !bytes.Contains(a.body, []byte(p)) {
			return fmt.Errorf("the answer is %.300s, want %s in it", a.body, p)
		}
	}
	return nil
}

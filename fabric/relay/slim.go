package relay

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// The buffers of a socket: a message that is longer goes past them. Those of
// net/http have 4 KiB each, which ten thousand idle sockets would hold for
// nothing.
const (
	readBuffer  = 256
	writeBuffer = 512
)

// slim returns a connection that is taken over (hijacked) small buffers.
type slim struct{ http.ResponseWriter }

func (w slim) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, large, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := large.Reader.Buffered() // what came with the request is not to be lost
	reader := bufio.NewReaderSize(io.MultiReader(io.LimitReader(large.Reader, int64(early)), conn),
		max(readBuffer, early))
	if _, err := reader.Peek(early); err != nil {
		_ = conn.Close() // nobody has it yet
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(conn, writeBuffer)), nil
}

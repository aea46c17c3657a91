// Command run starts a cluster that you can try, proves that its nodes act as one, and stops it on
// Ctrl-C: go run ./test/cluster/run. With -once, it stops the cluster after the proof.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/selvage/selvage/test/cluster"
	"github.com/selvage/selvage/test/harness"
)

func main() {
	once := flag.Bool("once", false, "stop after the proof")
	flag.Parse()

	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	t := &harness.Program{Name: "cluster"}
	defer func() {
		t.End()
		harness.Sweep()
	}()

	began := time.Now()
	c := cluster.Start(t, "setsid") // Ctrl-C must not reach the nodes, which stop in order
	show(c, time.Since(began))
	c.Prove(t, say)
	if *once {
		return
	}

	fmt.Println("\nPress Enter to prove it again, Ctrl-C to stop the cluster.")
	again := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			again <- struct{}{}
		}
	}()
	for {
		select {
		case <-again:
			c.Prove(t, say)
		case <-interrupted:
			return
		}
	}
}

func say(step string) { fmt.Println("  " + step) }

// show prints the addresses of a cluster, and how to administer it.
func show(c *cluster.Cluster, took time.Duration) {
	fmt.Printf("A cluster is ready after %.1f s at %s\n", took.Seconds(), c.HTTP)
	for i, n := range c.Each {
		fmt.Printf("  node %d      %s, metrics at %s, process %d\n", i+1, n.HTTP, n.Ops, n.PID())
	}
	fmt.Printf("  PostgreSQL  127.0.0.1:%d, replica 127.0.0.1:%d\n", c.Postgres.Primary.Port, c.Postgres.Replica.Port)
	for i, r := range c.Redis.Nodes[:len(c.Redis.Nodes)/2] {
		fmt.Printf("  Redis       127.0.0.1:%d and 127.0.0.1:%d\n", r.Port, c.Redis.Nodes[i+len(c.Redis.Nodes)/2].Port)
	}
	fmt.Printf("  S3          %s\n\n", c.S3.Endpoint)

	fmt.Println("Watch it:  selvage top --url", c.Each[0].Ops, "--url", c.Each[1].Ops, "--url", c.Each[2].Ops)
	fmt.Println("Commands need its environment:")
	for _, entry := range c.Backends {
		fmt.Printf("  export %q\n", entry)
	}
	fmt.Printf("  export SELVAGE_DATA=%s SELVAGE_PUBLIC_URL=%s SELVAGE_AUTH_URL=%[2]s\n\n", c.Data, c.HTTP)
}

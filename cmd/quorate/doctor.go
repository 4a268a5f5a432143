package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/protocol"
)

// newDoctorCommand walks from the address in use to the brokers behind it.
func newDoctorCommand() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find out why a client does not reach its broker", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := targetOf(cmd)
			if err != nil {
				return err
			}
			if err := say(cmd, "using NameServer %s", t); err != nil {
				return err
			}
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error { return diagnose(ctx, cmd, a, topic) })
		},
	}
	addTargetFlag(cmd)
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "check a topic, too")
	return cmd
}

// diagnose stops at the first check that fails: what follows would fail for the same reason.
func diagnose(ctx context.Context, cmd *cobra.Command, a *admin.Client, topic string) error {
	for _, check := range []func(context.Context, *admin.Client, string) (string, error){checkNameServers, checkBrokers, checkTopic} {
		text, err := check(ctx, a, topic)
		if err != nil {
			return errors.Join(say(cmd, "FAIL  %s", err), errReported)
		}
		if text == "" {
			continue
		}
		if err := say(cmd, "ok    %s", text); err != nil {
			return err
		}
	}
	return nil
}

func checkNameServers(ctx context.Context, a *admin.Client, _ string) (string, error) {
	for _, addr := range a.NameServers() {
		if _, err := a.NameServerConfig(ctx, addr); err != nil {
			return "", fmt.Errorf("NameServer %s does not answer: %w", addr, err)
		}
	}
	return fmt.Sprintf("%d NameServer(s) answer", len(a.NameServers())), nil
}

func checkBrokers(ctx context.Context, a *admin.Client, _ string) (string, error) {
	addrs, err := a.Masters(ctx, "")
	if err != nil {
		return "", err
	}
	for _, addr := range addrs {
		if _, err := a.Runtime(ctx, addr); err != nil {
			return "", fmt.Errorf("a broker is announced at %s, which does not answer from here. "+
				"If that is an address of another network, start the broker with brokerIP1 (standalone: --host): %w", addr, err)
		}
	}
	return fmt.Sprintf("%d broker(s) are registered and answer at the address they announce: %s", len(addrs), strings.Join(addrs, ", ")), nil
}

func checkTopic(ctx context.Context, a *admin.Client, topic string) (string, error) {
	if topic == "" {
		return "", nil
	}
	r, err := a.Route(ctx, topic)
	if err != nil {
		return "", fmt.Errorf("%w. Create it: quorate topic create %s", err, topic)
	}
	var read, write int32
	for _, q := range r.QueueDatas {
		if q.Perm&protocol.PermRead != 0 {
			read += q.ReadQueueNums
		}
		if q.Perm&protocol.PermWrite != 0 {
			write += q.WriteQueueNums
		}
	}
	if read == 0 || write == 0 {
		return "", fmt.Errorf("topic %s has %d queues to read and %d to write: quorate topic perm %s rw", topic, read, write, topic)
	}
	return fmt.Sprintf("topic %s has %d queues to read and %d to write", topic, read, write), nil
}

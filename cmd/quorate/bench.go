package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/bench"
	"github.com/quorate/quorate/protocol"
)

// benchOutput says how a result is shown.
type benchOutput struct {
	json, csv, quiet bool
	serialization    string
}

func newBenchCommand() *cobra.Command {
	cmd := noun("bench", "Load a broker and measure rate, latency, CPU and memory", newBenchProduce(), newBenchConsume())
	cmd.Long = `Load a broker and measure rate, latency, CPU and memory.

The letters of RocketMQ's benchmark scripts mean what they mean there: -t topic, -w requests at work at once, -s body
bytes, -q messages, -k keys, -l tags, -g group.`
	addTargetFlag(cmd)
	return cmd
}

func addBenchFlags(f *pflag.FlagSet, c *bench.Config, o *benchOutput) {
	f.StringVarP(&c.Topic, "topic", "t", c.Topic, "topic, or prefix of --topics")
	f.IntVar(&c.Topics, "topics", c.Topics, "topics")
	f.IntVar(&c.Queues, "queues", c.Queues, "queues per topic and broker")
	f.IntVar(&c.Connections, "connections", c.Connections, "connections")
	f.DurationVarP(&c.Duration, "duration", "d", c.Duration, "how long")
	f.DurationVar(&c.WarmUp, "warm-up", c.WarmUp, "load before the clock runs")
	f.Int64VarP(&c.Messages, "count", "q", c.Messages, "stop after so many messages; 0 goes by time alone")
	f.StringSliceVar(&c.Brokers, "broker", nil, "broker addresses, instead of asking a NameServer")
	f.DurationVar(&c.Interval, "interval", c.Interval, "time between progress lines")
	f.IntVar(&c.TargetPID, "pid", 0, "process whose CPU and memory are reported; default: who listens at the broker's port here")
	f.StringVar(&o.serialization, "serialization", "rocketmq", "header encoding: rocketmq or json")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	f.BoolVar(&o.csv, "csv", false, "print the result as CSV")
	f.BoolVar(&o.quiet, "quiet", false, "no progress lines")
}

func newBenchProduce() *cobra.Command {
	c := bench.DefaultProduceConfig()
	var o benchOutput
	cmd := &cobra.Command{
		Use: "produce", Aliases: []string{"send"}, Short: "Send messages", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd, &c.Config, &o, c.Validate, func(ctx context.Context, progress func(bench.Progress)) (bench.Result, error) {
				r, _, err := bench.Produce(ctx, c, progress)
				return r, err
			})
		},
	}
	f := cmd.Flags()
	addBenchFlags(f, &c.Config, &o)
	f.IntVarP(&c.InFlight, "in-flight", "w", c.InFlight, "requests at work at once per connection")
	f.IntVarP(&c.BodyBytes, "size", "s", c.BodyBytes, "body bytes")
	f.IntVarP(&c.Batch, "batch", "b", c.Batch, "messages per request")
	f.Float64VarP(&c.Rate, "rate", "r", c.Rate, "messages a second over all connections; 0 is as fast as answers come")
	f.BoolVarP(&c.Keys, "keys", "k", c.Keys, "give each message a key")
	f.IntVarP(&c.Tags, "tags", "l", c.Tags, "so many tags in turn")
	f.IntVar(&c.PropertyBytes, "property-size", c.PropertyBytes, "bytes of one user property")
	f.IntVarP(&c.DelayLevel, "delay-level", "e", c.DelayLevel, "delay level")
	f.BoolVar(&c.Oneway, "oneway", c.Oneway, "ask for no answers")
	f.StringVarP(&c.Group, "group", "g", c.Group, "producer group")
	return cmd
}

func newBenchConsume() *cobra.Command {
	c := bench.DefaultConsumeConfig()
	var o benchOutput
	cmd := &cobra.Command{
		Use: "consume", Aliases: []string{"pull"}, Short: "Pull messages", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd, &c.Config, &o, c.Validate, func(ctx context.Context, progress func(bench.Progress)) (bench.Result, error) {
				r, _, err := bench.Consume(ctx, c, progress)
				return r, err
			})
		},
	}
	f := cmd.Flags()
	addBenchFlags(f, &c.Config, &o)
	f.IntVarP(&c.MaxMessages, "batch", "b", c.MaxMessages, "messages per pull")
	f.StringVarP(&c.Expression, "expression", "e", c.Expression, "tags: a || b")
	f.BoolVar(&c.FromEnd, "from-end", c.FromEnd, "start behind what is there")
	f.DurationVar(&c.Hold, "hold", c.Hold, "how long the broker may hold a pull that finds nothing")
	f.BoolVar(&c.Repeat, "repeat", c.Repeat, "start again at the first message after the last")
	f.StringVarP(&c.Group, "group", "g", c.Group, "consumer group")
	return cmd
}

func runBench(cmd *cobra.Command, c *bench.Config, o *benchOutput, validate func() error, load func(context.Context, func(bench.Progress)) (bench.Result, error)) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	if len(c.Brokers) == 0 {
		c.NameServers = t.addrs
	}
	switch o.serialization {
	case "rocketmq":
		c.Serialization = protocol.RocketMQ
	case "json":
		c.Serialization = protocol.JSON
	default:
		return usagef("serialization %q: it is rocketmq or json", o.serialization)
	}
	if err := validate(); err != nil {
		return &usageError{err}
	}
	progress := func(p bench.Progress) {
		fmt.Fprintln(cmd.ErrOrStderr(), p)
	}
	if o.quiet {
		progress = nil
	}
	ctx, stop := untilSignal(cmd.Context(), func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) })
	defer stop()
	result, err := load(ctx, progress)
	if err != nil && !errors.Is(err, context.Canceled) {
		return explain(err, t)
	}
	switch {
	case o.json:
		return result.WriteJSON(cmd.OutOrStdout())
	case o.csv:
		return result.WriteCSV(cmd.OutOrStdout(), time.Now(), true)
	}
	return result.WriteText(cmd.OutOrStdout())
}

"""A ROS 2 node that makes coarse registered depth as fine as the colour image.

It takes the topics of depth_image_proc's point_cloud_xyzrgb, and publishes depth that point_cloud_xyzrgb takes:

    rgb/image_rect_color         sensor_msgs/Image       in
    rgb/camera_info              sensor_msgs/CameraInfo  in
    depth_registered/image_rect  sensor_msgs/Image       in, 16UC1 in mm or 32FC1 in m
    fine/image_rect              sensor_msgs/Image       out, of the same encoding and the size of the colour image
    fine/camera_info             sensor_msgs/CameraInfo  out

Depth of the size of the colour image has its holes filled; coarser depth is upsampled frame after frame.
"""

from __future__ import annotations

import warnings
from typing import Any

import message_filters
import rclpy
from messages import UNITS, array_of, depth_of, fill
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image

import dada

QUEUE = 5
APART = 0.03  # seconds between a depth image and its colour image, at most


class UpsampleNode(Node):  # type: ignore[misc]
    """Computes each pair of images as it arrives; pairs that arrive meanwhile are dropped, as queues are short."""

    def __init__(self) -> None:
        super().__init__("dada_upsample")
        model = self.declare_parameter("model", "default").value
        weight = self.declare_parameter("temporal_weight", 0.0).value
        self._model = dada.load_model(model)
        self._weight = weight
        self._upsamplers: dict[str, dada.Upsampler] = {}
        self._image = self.create_publisher(Image, "fine/image_rect", QUEUE)
        self._info = self.create_publisher(CameraInfo, "fine/camera_info", QUEUE)
        topics = [
            (Image, "rgb/image_rect_color"),
            (CameraInfo, "rgb/camera_info"),
            (Image, "depth_registered/image_rect"),
        ]
        inputs = [message_filters.Subscriber(self, *topic, qos_profile=qos_profile_sensor_data) for topic in topics]
        together = message_filters.ApproximateTimeSynchronizer(inputs, QUEUE, APART)
        together.registerCallback(self._on_frame)

    def _on_frame(self, colour: Any, info: Any, depth: Any) -> None:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                values = self._computed(array_of(colour), depth_of(depth), depth.encoding)
        except ValueError as error:  # which dada.InputError is too
            self.get_logger().error(str(error), throttle_duration_sec=5.0)
            return
        for warning in caught:
            self.get_logger().warning(str(warning.message), throttle_duration_sec=5.0)
        message = fill(Image(), values, "32FC1" if depth.encoding == "32FC1" else "16UC1")
        message.header = info.header = colour.header
        self._image.publish(message)
        self._info.publish(info)

    def _computed(self, guide: Any, source: Any, encoding: str) -> Any:
        unit = UNITS[encoding]
        if source.shape == guide.shape[:2]:
            return dada.complete(source, guide, model=self._model, unit=unit).values
        if encoding not in self._upsamplers:
            self._upsamplers[encoding] = dada.Upsampler(model=self._model, unit=unit, temporal_weight=self._weight)
        return self._upsamplers[encoding](source, guide).values


def main() -> None:
    rclpy.init()
    node = UpsampleNode()
    try:
        rclpy.spin(node)
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()

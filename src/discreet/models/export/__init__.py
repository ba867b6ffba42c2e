"""Fitted models for other tools: scikit-learn pipelines, ONNX graphs, MLflow. All of it is post-processing."""
